import { setImmediate } from "node:timers/promises";
import type { StepOutcome } from "../../core/stores/cell/operation-store.ts";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import type { OperationStep } from "../../core/tasks/operation-step.ts";
import { AttemptReport, type ConductorMessage, GuestState } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { OperationRun } from "../../services/conductor/operation-run.ts";
import { hostName, serverId, serverSpec, taskId } from "../contract/cell-fixtures.ts";
import { selectionOf } from "./begin-operation.ts";

const SPAN = { traceparent: "", traceId: "", end: () => {} };

/** A move of server 1 from host 0 to host 1 that one conductor's run continues at a stage, and what it does there. */
export function moveAt(
  kind: OperationKind,
  stage: string,
  guests: { readonly isBeside: boolean },
  others: object = {},
  reason = "",
) {
  const clock = new ManualClock();
  const done: string[] = [];
  const steps: OperationStep[] = [];
  const ports = {
    ...{
      clock,
      store: {},
      releaser: { tryReleaseSeen: async () => "unseen" },
      events: { operationWaits() {}, attemptFailed() {}, operationEnded() {} },
      settings: { attemptTimeoutMs: 60_000, hostGraceMs: 1_000, unseenMs: 5_000 },
    },
    ...{ arrivals: () => 0, arrivalOf: () => 0, moved() {}, ended() {}, tell() {}, needs: { meet: () => null } },
    streamOf: (host: string) => ({
      send: ({ body }: ConductorMessage) => void done.push(`${body?.$case} ${host}`),
    }),
    isBesideQuarantined: async () => guests.isBeside,
    guests: {
      clear: async () => {},
      mayDestroy: async ({ host }: { readonly host: string }) => void done.push(`judge ${host}`),
    },
    commits: {
      commitStep: async (step: OperationStep): Promise<StepOutcome> => {
        steps.push(step);
        done.push(`commit ${step.stage}`);
        return { kind: "committed", revision: 9 };
      },
    },
    ...others,
  };
  const operation = {
    ...{
      kind,
      source: { host: hostName(0), attemptId: "b/0", allocation: undefined },
      destination: undefined,
    },
    ...{ selections: [selectionOf(1)], before: serverSpec(1), statusBefore: "ACTIVE", migrationUuid: taskId(7) },
    ...{ fenceWaived: false, rescueImage: undefined, snapshot: undefined, volume: undefined },
  };
  const task = { id: taskId(7), server: serverSpec(1), work: { $case: "operate", value: operation } as const };
  const run = new OperationRun(
    { task, epoch: 1, selection: 0, host: null, attemptId: null },
    SPAN,
    ports as unknown as ConstructorParameters<typeof OperationRun>[2],
    0,
  );
  run.begin({ ...{ taskId: task.id, stage, step: 2, selection: 0, signal: null, revision: 2, reason } }, []);
  return { run, clock, done, steps };
}

/** Lets what has been begun come to its end. */
export const settled = async () => {
  for (let turns = 0; turns < 5; turns += 1) await setImmediate();
};

/** A move whose source was told to hand over, and what has been done since. */
export async function handedOver(others: object = {}, kind: OperationKind = "live-migrate") {
  const orders: string[] = [];
  const streams = new Map<string, object>();
  for (const host of [hostName(0), hostName(1)])
    streams.set(host, {
      send: ({ body }: ConductorMessage) => void (body?.$case === "handOff" && orders.push(body.value.orderId)),
    });
  const cleared: string[] = [];
  const guests = {
    clear: async ({ host }: { readonly host: string }) => void cleared.push(host),
    look: async () => ({ kind: "silent" }),
  };
  const streamOf = (host: string) => streams.get(host) ?? null;
  const ports = {
    guests,
    streamOf,
    releaser: { tryRelease: async () => "down", tryReleaseSeen: async () => "unseen" },
    ...others,
  };
  const move = moveAt(kind, "handing-over", { isBeside: false }, ports);
  await settled();
  move.run.reported(
    AttemptReport.fromPartial({
      ...{ host: hostName(1), serverUuid: serverId(1), attemptId: `${taskId(7)}/0` },
      ...{ state: GuestState.GUEST_STATE_PREPARED, listensAt: "qemu://there" },
    }),
    0,
  );
  await settled();
  return { ...move, orders, cleared, streams };
}
