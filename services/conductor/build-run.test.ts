import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { HopOutcome } from "../../core/stores/cell/cell-store.ts";
import { AttemptReport, type ConductorMessage, GuestState } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { dispatchOf, hostName, serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { BuildRun } from "./build-run.ts";

test.each([
  ["may", "destroy host-0"],
  ["kept", "look at host-0"],
] as const)(
  "has the guest of a host judged that has failed to build it, before the build goes to another host (%s)",
  async (verdict, left) => {
    const done: string[] = [];
    const ports = {
      ...{ clock: new ManualClock(), releaser: {}, store: {}, events: { attemptFailed() {}, alternateSkipped() {} } },
      ...{ moved() {}, ended() {}, tell() {}, needs: { meet: () => null } },
      settings: { attemptTimeoutMs: 60_000, hostGraceMs: 1_000 },
      streamOf: (host: string) => ({ send: ({ body }: ConductorMessage) => void done.push(`${body?.$case} ${host}`) }),
      guests: {
        mayDestroy: async ({ host, attemptId }: { readonly host: string; readonly attemptId: string }) => {
          done.push(`judge ${host} ${attemptId}`);
          return verdict;
        },
        clear: async ({ host }: { readonly host: string }) => void done.push(`look at ${host}`),
      },
      commits: {
        hop: async ({ toHost }: { readonly toHost: string }): Promise<HopOutcome> => {
          done.push(`hop to ${toHost}`);
          return { kind: "committed" };
        },
      },
    };
    const { task } = dispatchOf({ server: 1, task: 1, hosts: [0, 1] });
    const { work, server } = task;
    if (work?.$case !== "build" || server === undefined) throw new Error("it is no build");
    const run = new BuildRun(
      { task, epoch: 1, selection: 0, host: hostName(0), attemptId: `${taskId(1)}/0` },
      work.value,
      server,
      { traceparent: "", traceId: "", end: () => {} },
      ports as unknown as ConstructorParameters<typeof BuildRun>[4],
    );
    run.begin(0, []);
    const names = { host: hostName(0), serverUuid: serverId(1), attemptId: `${taskId(1)}/0` };
    run.reported(
      AttemptReport.fromPartial({ ...names, state: GuestState.GUEST_STATE_FAILED, reason: "the disk is full" }),
      0,
    );
    for (let turns = 0; turns < 5; turns += 1) await setImmediate();
    expect(done.slice(0, 3)).toEqual(["build host-0", `judge host-0 ${taskId(1)}/0`, "hop to host-1"]);
    expect(done.slice(3).sort()).toEqual(["build host-1", left].sort());
  },
);
