import { expect, test } from "vitest";
import type { ServerPut } from "../../../core/ledger/row-change.ts";
import type { RequestRecord } from "../../../core/stores/api/api-store.ts";
import type { Server } from "../../../core/tasks/server.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { PathBook } from "./path-book.ts";

const spec = serverSpec(1);
const SINCE = 10_000;

const request = (id: string, change: Partial<RequestRecord>): RequestRecord => ({
  ...{ serverUuid: id, state: "accepted", cell: null, assignment: 0, spec, changes: null, fault: null },
  ...{ cancellation: null, createdAtMs: SINCE, updatedAtMs: SINCE, softlyDeleted: false },
  ...change,
});
const row = (uuid: string, status: string, host: string) =>
  ({ uuid, status, taskState: null, host, specRevision: 1, spec: () => spec }) as unknown as ServerPut;

test("counts a request that fails before it was seen, and none that had failed before the book was opened", () => {
  const book = new PathBook(SINCE);
  const old = request("old", { state: "failed", updatedAtMs: SINCE - 1, fault: "no host" });
  const quick = request("quick", { state: "failed", updatedAtMs: SINCE + 1, fault: "no host" });
  book.requestsSeen([old, quick]);
  book.requestsSeen([old, quick]);
  expect(book.counts.failed).toBe(1);
  expect(book.paths().map(({ id, state }) => [id, state])).toEqual([
    ["old", "error"],
    ["quick", "error"],
  ]);
});

test("counts hops, ends and failures for each cell, and all of them together", () => {
  const book = new PathBook(SINCE);
  const busyOn = (host: string) => ({ host, busy: true });
  book.serverPut("north", row("a", "BUILD", "one"), null, SINCE);
  book.serverPut("north", row("a", "BUILD", "two"), busyOn("one"), SINCE);
  book.serverPut("north", row("a", "ACTIVE", "two"), busyOn("two"), SINCE);
  book.serverPut("south", row("b", "BUILD", "six"), null, SINCE);
  book.serverPut("south", row("b", "BUILD", "seven"), busyOn("six"), SINCE);
  expect([book.countsOf("north"), book.countsOf("south"), book.countsOf("west")]).toEqual([
    [1, 1, 0],
    [0, 1, 0],
    [0, 0, 0],
  ]);
  expect(book.counts).toEqual({ placed: 2, hops: 2, active: 1, failed: 0, deleted: 0 });
});

test("takes rows without a spec, as the stream brings those of operations, and labels a server that it did not know when it is read", () => {
  const book = new PathBook(SINCE);
  const resized = (uuid: string): ServerPut => ({
    ...row(uuid, "ACTIVE", "one"),
    ...{ taskState: "resize_prep", specRevision: null },
    spec: () => {
      throw new Error("the stream does not describe the server");
    },
  });
  const atRest = { host: "one", busy: false };
  book.serverPut("north", row("known", "BUILD", "one"), null, SINCE);
  book.serverPut("north", row("known", "ACTIVE", "one"), { host: "one", busy: true }, SINCE + 1);
  book.serverPut("north", resized("known"), atRest, SINCE + 2);
  book.serverPut("north", resized("other"), atRest, SINCE + 3);
  const shown = () => book.paths().map(({ id, name, project, kind, state }) => [id, name, project, kind, state]);
  const move = ["resize_prep", "building"];
  expect(shown()).toEqual([
    ["known", spec.name, spec.projectId, ...move],
    ["other", "", "", ...move],
  ]);
  expect(book.takeStale("north", 10)).toEqual(["known", "other"]);
  const other = { uuid: "other", status: "ACTIVE", taskState: "resize_prep", host: "one", spec } as unknown as Server;
  book.read("north", [other], []);
  expect(shown()[1]).toEqual(["other", spec.name, spec.projectId, ...move]);
});
