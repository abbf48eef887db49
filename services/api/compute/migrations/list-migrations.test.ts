import { describe, expect, it } from "vitest";
import type { MigrationQuery } from "../../../../core/stores/cell/operation-store.ts";
import type { Migration } from "../../../../core/tasks/migration.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { KnownCall } from "../../http/call.ts";
import { listMigrations, readMigrationQuery } from "./list-migrations.ts";

const START_MS = 1_700_000_000_000;
const uuidOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

/** The oldest has the number 0; three begin in each millisecond, in the reverse order of their uuids. */
function migrationsOf(cell: number, count: number, status: (number: number) => string): readonly Migration[] {
  return Array.from({ length: count }, (_, index) => {
    const number = index * 2 + cell;
    const row = {
      ...{ uuid: uuidOf(number), serverUuid: uuidOf(1_000_000 + number), kind: "migrate", status: status(number) },
      ...{ sourceHost: "h-0", destHost: "h-1", createdAtMs: START_MS + Math.floor(number / 6), updatedAtMs: START_MS },
    };
    return { ...row, server: {}, operation: {}, ended: true } as unknown as Migration;
  });
}

/** A cell that keeps these migrations. It orders those of the same millisecond by their arrival, as a cell with a finer clock does. */
function cellOf(name: string, rows: readonly Migration[]) {
  const youngestFirst = rows.toReversed();
  const migrations = async ({ uuids, after, untilMs = Infinity, limit }: MigrationQuery) => {
    if (uuids !== undefined) return rows.filter(({ uuid }) => uuids.includes(uuid));
    const start = after === undefined ? 0 : youngestFirst.findIndex(({ uuid }) => uuid === after) + 1;
    return youngestFirst
      .slice(start)
      .filter(({ createdAtMs }) => createdAtMs <= untilMs)
      .slice(0, limit);
  };
  const operations = async (ask: (store: unknown) => Promise<unknown>) => ({
    kind: "answer",
    value: await ask({ migrations }),
  });
  return { name, operations } as unknown as CellClient;
}

const CALL: KnownCall = {
  requestId: "req-1",
  minor: 96,
  token: null,
  identity: { projectId: "p", userId: "u", isAdmin: true, roles: ["admin"] },
  policy: null,
  rules: [],
};

function world(counts: readonly number[], status: (number: number) => string) {
  const rows = counts.map((count, cell) => migrationsOf(cell, count, status));
  const cells = new Map(rows.map((ofCell, at) => [`cell-${at}`, cellOf(`cell-${at}`, ofCell)]));
  const sorted = rows.flat().sort((a, b) => b.createdAtMs - a.createdAtMs || (a.uuid < b.uuid ? -1 : 1));
  const page = (query: Record<string, string>) =>
    listMigrations({ cells, clock: new ManualClock(0) }, readMigrationQuery(query, CALL, 1_000));
  /** All pages, one after the other. */
  const pages = async (query: Record<string, string>) => {
    const found: string[][] = [];
    for (let marker = {}; ; ) {
      const { migrations, nextMarker } = await page({ ...query, ...marker });
      found.push(migrations.map(({ migration }) => migration.uuid));
      if (nextMarker === null) return found;
      marker = { marker: nextMarker };
    }
  };
  return { sorted, page, pages };
}

describe("the list of migrations", () => {
  it("contains those of all cells once, youngest first, page by page", async () => {
    const { sorted, pages } = world([1_300, 700], () => "completed");
    for (const limit of ["1000", "333"])
      expect((await pages({ limit })).flat()).toEqual(sorted.map(({ uuid }) => uuid));
  });

  it("returns no empty page while a match follows, however few pass the filter", async () => {
    const { sorted, page, pages } = world([30_000, 2_000], (number) => (number % 9_998 === 0 ? "error" : "completed"));
    const failed = sorted.filter(({ status }) => status === "error").map(({ uuid }) => uuid);
    expect(failed.length).toBeGreaterThan(3);
    const found = await pages({ status: "error", limit: "5" });
    expect(found.flat()).toEqual(failed);
    expect(found.slice(0, -1).every((uuids) => uuids.length > 0)).toBe(true);
    expect(await page({ status: "nothing like it", limit: "5" })).toEqual({ migrations: [], nextMarker: null });
  });

  it("has no next page when the last one is full", async () => {
    const { page } = world([3, 2], () => "completed");
    expect(await page({ limit: "5" })).toMatchObject({ nextMarker: null, migrations: { length: 5 } });
  });
});
