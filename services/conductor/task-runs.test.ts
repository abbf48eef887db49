import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import type { TakenTask } from "../../core/stores/cell/cell-store.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { dispatchOf, taskId } from "../../test/contract/cell-fixtures.ts";
import { TaskRuns } from "./task-runs.ts";

test.each<[string, Partial<TakenTask["task"]>]>([
  ["whose payload could not be read", { server: undefined, work: undefined }],
  [
    "of a kind that this version does not know",
    {
      work: {
        $case: "operate",
        value: {
          ...{ kind: "teleport", source: undefined, selections: [], destination: undefined, before: undefined },
          ...{
            statusBefore: "ACTIVE",
            migrationUuid: "",
            fenceWaived: false,
            rescueImage: undefined,
            snapshot: undefined,
            volume: undefined,
          },
        },
      },
    },
  ],
])("reports a task %s with the reason, and still begins the next one", (_, change) => {
  const named: (readonly [string, string])[] = [];
  const events = { taskMalformed: (...word: [string, string]) => void named.push(word) };
  const ports = { events, clock: new ManualClock(), arrivals: () => 0, settings: { unreadableMs: 1_000 } };
  const runs = new TaskRuns(ports as unknown as ConstructorParameters<typeof TaskRuns>[0], noTracing);
  const { task } = dispatchOf({ server: 1, task: 1, hosts: [0] });
  const taken = { task: { ...task, ...change }, epoch: 1, selection: 0, host: null, attemptId: null };
  expect(() => runs.begin(taken, { arrivals: 0 })).not.toThrow();
  expect(named).toEqual([[taskId(1), expect.stringMatching(/./)]]);
  // The task belongs to this conductor until another one takes it, or it ends.
  expect(runs.has(taskId(1))).toBe(true);
});

test("retries an operation at an unknown stage at growing intervals, and reports it once", async () => {
  const clock = new ManualClock();
  const named: string[] = [];
  const rests: number[] = [];
  let epoch = 1;
  const { task } = dispatchOf({ server: 1, task: 1, hosts: [0] });
  const operate = {
    ...{ kind: "rebuild", source: undefined, selections: [], destination: undefined, before: undefined },
    ...{
      statusBefore: "ACTIVE",
      migrationUuid: "",
      fenceWaived: false,
      rescueImage: undefined,
      snapshot: undefined,
      volume: undefined,
    },
  };
  const work = { $case: "operate" as const, value: operate };
  const takenNow = (): TakenTask => ({ task: { ...task, work }, epoch, selection: 0, host: null, attemptId: null });
  const ports = {
    clock,
    settings: { unseenMs: 0 },
    arrivals: () => 0,
    events: {
      stageUnknown: (_: unknown, kind: string, stage: string) => void named.push(`${kind} ${stage}`),
      resumed() {},
    },
    store: { positions: async () => [{ stage: "levitating" }], attempts: async () => [] },
    commits: {
      insist: (_: string, call: () => Promise<unknown>) => call(),
      take: async () => {
        epoch += 1;
        return takenNow();
      },
    },
    // There is no other live conductor.
    releaser: { pass: async (_: unknown, restMs: number) => void rests.push(restMs) },
  };
  const runs = new TaskRuns(ports as unknown as ConstructorParameters<typeof TaskRuns>[0], noTracing);
  runs.begin(takenNow(), { arrivals: 0 });
  for (let takes = 1; takes <= 9; takes += 1) {
    while (rests.length < takes) await setImmediate();
    expect(runs.size).toBe(1);
    clock.advance(rests.at(-1) ?? 0);
  }
  expect(rests).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((seconds) => seconds * 1_000));
  expect(named).toEqual(["rebuild levitating"]);
});
