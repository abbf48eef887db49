import { expect, test } from "vitest";
import type { Migration } from "../../core/tasks/migration.ts";
import { migrationWith } from "../../core/tasks/operation-record.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { ResizeConfirmer } from "./resize-confirmer.ts";

type Options = ConstructorParameters<typeof ResizeConfirmer>[0];

/** A resize that waits for its confirmation. */
function resizeOf(number: number, { isReadable }: { readonly isReadable: boolean }): Migration {
  const columns = {
    ...{ uuid: taskId(number), serverUuid: serverId(number), kind: "resize" as const, status: "finished", note: "" },
    ...{ sourceHost: "host-0", sourceAttemptId: null, destHost: "host-1", destAttemptId: "" },
    ...{ ended: false, holdsSource: true, progress: null, createdAtMs: 0, updatedAtMs: 0 },
  } as const;
  const readable = { server: {}, work: { $case: "operate", value: {} } } as unknown as Task;
  return migrationWith(columns, isReadable ? readable : { id: taskId(number), server: undefined, work: undefined });
}

/** A confirmer of resizes, none of which can be confirmed. `ask` is called with the server of each that it tries. */
function confirmerOf(resizes: readonly Migration[], ask: (uuid: string) => void = () => undefined) {
  const clock = new ManualClock();
  const named: string[] = [];
  const asked: string[] = [];
  let rounds = 0;
  const confirmer = new ResizeConfirmer({
    clock,
    settings: { confirmAfterMs: 1_000 },
    events: {
      moveUnreadable: ({ uuid }: { readonly uuid: string }) => void named.push(uuid),
      databaseFailed: (_: string, error: unknown) => void named.push(String(error)),
    } as unknown as Options["events"],
    store: {
      unconfirmed: async (_, limit, after) => {
        rounds += 1;
        return resizes.filter(({ serverUuid }) => after === null || serverUuid > after).slice(0, limit);
      },
      servers: async (uuids) => {
        asked.push(...uuids);
        uuids.forEach(ask);
        return [];
      },
      begin: async () => [],
    },
  });
  const run = async (roundsMin: number) => {
    confirmer.start();
    await eventually(`${roundsMin} rounds`, () => {
      clock.advance(1_000);
      return rounds >= roundsMin;
    });
    await confirmer.stop();
  };
  return { named, asked, run };
}

test("reports a move with an unreadable record once, and still confirms the others", async () => {
  const { named, asked, run } = confirmerOf([resizeOf(1, { isReadable: false }), resizeOf(2, { isReadable: true })]);
  await run(3);
  expect(named).toEqual([taskId(1)]);
  expect(new Set(asked)).toEqual(new Set([serverId(2)]));
});

test("tries each of 250 moves in turn, though none of them can be confirmed, and starts over", async () => {
  const servers = Array.from({ length: 250 }, (_, index) => serverId(index + 1));
  const { asked, run } = confirmerOf(servers.map((_, index) => resizeOf(index + 1, { isReadable: true })));
  await run(7);
  expect(asked.slice(0, 500)).toEqual([...servers, ...servers]);
});

test("continues after a move at which the database fails", async () => {
  const resizes = [1, 2, 3].map((number) => resizeOf(number, { isReadable: true }));
  const { named, asked, run } = confirmerOf(resizes, (uuid) => {
    if (uuid === serverId(2)) throw new Error("this row cannot be read");
  });
  await run(3);
  expect(asked.slice(0, 3)).toEqual([1, 2, 3].map(serverId));
  expect(named[0]).toContain("this row cannot be read");
});
