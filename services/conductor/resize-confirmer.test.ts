import { expect, test } from "vitest";
import { migrationWith } from "../../core/tasks/operation-record.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { ResizeConfirmer } from "./resize-confirmer.ts";

test("reports a move with an unreadable record once, and still confirms the others", async () => {
  const clock = new ManualClock();
  const unconfirmed = [1, 2].map((number) => {
    const columns = {
      ...{ uuid: taskId(number), serverUuid: serverId(number), kind: "resize" as const, status: "finished", note: "" },
      ...{ sourceHost: "host-0", sourceAttemptId: null, destHost: "host-1", destAttemptId: "" },
      ...{ ended: false, holdsSource: true, progress: null, createdAtMs: 0, updatedAtMs: 0 },
    } as const;
    const readable = { server: {}, work: { $case: "operate", value: {} } } as unknown as Task;
    return migrationWith(columns, number === 1 ? { id: taskId(1), server: undefined, work: undefined } : readable);
  });
  const named: string[] = [];
  const asked: string[] = [];
  let rounds = 0;
  const confirmer = new ResizeConfirmer({
    clock,
    settings: { confirmAfterMs: 1_000 },
    events: {
      moveUnreadable: ({ uuid }: { readonly uuid: string }) => void named.push(uuid),
      databaseFailed: (_: string, error: unknown) => void named.push(String(error)),
    } as unknown as ConstructorParameters<typeof ResizeConfirmer>[0]["events"],
    store: {
      unconfirmed: async () => {
        rounds += 1;
        return unconfirmed;
      },
      servers: async (uuids) => {
        asked.push(...uuids);
        return [];
      },
      begin: async () => [],
    },
  });
  confirmer.start();
  await eventually("three rounds", () => {
    clock.advance(1_000);
    return rounds >= 3;
  });
  await confirmer.stop();
  expect(named).toEqual([taskId(1)]);
  expect(new Set(asked)).toEqual(new Set([serverId(2)]));
});
