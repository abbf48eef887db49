import { describe, expect, test } from "vitest";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import { GUEST_IN_QUARANTINE, type QuarantineAdmin } from "../../core/stores/cell/quarantine.ts";
import { OPERATION_KINDS, OPERATIONS, type OperationKind } from "../../core/tasks/operation-kinds.ts";
import type { Ask, Edges, Stage, Target } from "../../core/tasks/operation-routes.ts";
import { abortedTo } from "../../core/tasks/operation-stages.ts";
import type { ServerStatus } from "../../core/tasks/server.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { OperationByHand } from "../rigs/operation-by-hand.ts";
import { hostName, numbered, serverId } from "./cell-fixtures.ts";

interface Subject {
  readonly cell: CellStore;
  readonly admin: HostAdminStore;
  readonly quarantine: QuarantineAdmin;
}

/** The operations that bring a server that is ACTIVE into a status, each with its further stages and its end. */
const WAYS: Partial<Record<ServerStatus, readonly (readonly [OperationKind, ...Exclude<Target, "another">[]])[]>> = {
  ACTIVE: [],
  SHUTOFF: [["stop", "succeed"]],
  PAUSED: [["pause", "succeed"]],
  SUSPENDED: [["suspend", "succeed"]],
  RESCUE: [["rescue", "succeed"]],
  SHELVED: [["shelve", "succeed"]],
  SHELVED_OFFLOADED: [["shelve-offload", "offloading", "succeed"]],
  SOFT_DELETED: [["soft-delete", "succeed"]],
  VERIFY_RESIZE: [["migrate", "handing-over", "starting", "succeed"]],
};
/** The orders after which a guest may run that did not run before. Those of `power` depend on the verb. */
const STARTING: readonly Ask[] = ["start-destination", "check-destination", "start-source", "rescue", "undo-rescue"];
const STARTING_VERBS = ["start", "reboot", "hard-reboot", "unpause", "resume", "unrescue"];

const starts = (kind: OperationKind, ask: Ask) =>
  STARTING.includes(ask) || (ask === "power" && STARTING_VERBS.includes(OPERATIONS[kind].verb ?? ""));
const stagesOf = (kind: OperationKind) => [...OPERATIONS[kind].route].map(([stage, edges]) => ({ stage, ...edges }));
const MAY_START = OPERATION_KINDS.filter((kind) => stagesOf(kind).some(({ ask }) => starts(kind, ask)));
const OTHERS = OPERATION_KINDS.filter((kind) => !MAY_START.includes(kind));
/** Every stage that starts a guest after the first stage of its operation, and every stage from which it is reached. */
const TRANSITIONS = MAY_START.flatMap((kind) =>
  stagesOf(kind)
    .slice(1)
    .filter(({ ask }) => starts(kind, ask))
    .flatMap(({ stage: to }) =>
      stagesOf(kind)
        .filter((from) => from.stage !== to && leadsTo(kind, from, to))
        .map((from) => ({ kind, from: from.stage, to })),
    ),
);

/** `another` leads to `restoring` when no destination is left, and an abort to `recalling`. */
function leadsTo(kind: OperationKind, { stage, ...edges }: Edges & { readonly stage: Stage }, to: Stage): boolean {
  const { done, failed, gone, fenced } = edges;
  if (abortedTo(kind, stage) === to) return true;
  return [done, failed, gone, fenced].some((target) => target === to || (target === "another" && to === "restoring"));
}

/** The stages on the way to a stage, the first one left out. */
function wayTo(kind: OperationKind, to: Stage): readonly Stage[] {
  const ways: (readonly Stage[])[] = [[]];
  const stages = stagesOf(kind);
  for (const way of ways) {
    const at = way.at(-1) ?? stages[0]?.stage;
    if (at === to) return way;
    const here = stages.find(({ stage }) => stage === at);
    for (const { stage } of stages)
      if (here !== undefined && !way.includes(stage) && leadsTo(kind, here, stage)) ways.push([...way, stage]);
  }
  throw new Error(`a ${kind} never reaches ${to}`);
}

/** While a guest of a server is in quarantine that may run, no other guest of it is started (law 4). */
export function testStartsBesideQuarantine(subject: () => Subject): void {
  const cell = () => subject().cell;
  const quarantine = async () => {
    const incarnation = await cell().incarnation();
    await subject().quarantine.renewIncarnation();
    const guest = { serverUuid: serverId(1), attemptId: `${numbered(0xe, 1)}/0`, state: "running", revision: 0 };
    expect(await cell().judgeGuests([{ ...guest, host: hostName(1), incarnation }])).toMatchObject([
      { kind: "quarantined" },
    ]);
  };
  const begin = (kind: OperationKind) =>
    beginOperationOn(cell(), { server: 1, kind, hosts: OPERATIONS[kind].isMove ? [kind === "rebuild" ? 0 : 1] : [] });
  /** Brings the server, which is ACTIVE, into a status in which the operation may begin. */
  const prepare = async (kind: OperationKind) => {
    const { allowedFrom } = OPERATIONS[kind];
    const status = allowedFrom.find((one) => WAYS[one] !== undefined);
    for (const [earlier, ...way] of (status && WAYS[status]) ?? []) {
      const byHand = new OperationByHand(cell(), (await begin(earlier)).task?.id ?? "");
      for (const to of way) expect(await byHand.goOn(to)).toMatchObject({ kind: "committed" });
    }
    if (OPERATIONS[kind].source === "fenced") await subject().admin.setForcedDown(hostName(0), true);
    expect(await cell().servers([serverId(1)])).toMatchObject([{ status }]);
  };

  describe("beside a guest of the server in quarantine", () => {
    test.each(MAY_START)("does not begin what starts a guest: %s", async (kind) => {
      await prepare(kind);
      await quarantine();
      expect((await begin(kind)).outcome).toEqual({ kind: "quarantined" });
      await subject().quarantine.condemn([serverId(1)]);
      expect((await begin(kind)).outcome).toMatchObject({ kind: "begun" });
    });

    test.each(OTHERS)("begins what starts none: %s", async (kind) => {
      await prepare(kind);
      await quarantine();
      expect((await begin(kind)).outcome).toMatchObject({ kind: "begun" });
    });

    test.each(TRANSITIONS)(
      "does not go on to a stage that starts a guest: $kind, from $from to $to",
      async ({ kind, from, to }) => {
        await prepare(kind);
        const byHand = new OperationByHand(cell(), (await begin(kind)).task?.id ?? "");
        for (const stage of wayTo(kind, from)) expect(await byHand.goOn(stage)).toMatchObject({ kind: "committed" });
        await quarantine();
        const asksNothing = OPERATIONS[kind].route.get(to)?.ask === "nothing";
        const refused = { kind: "refused", why: GUEST_IN_QUARANTINE };
        expect(await byHand.goOn(to)).toMatchObject(asksNothing ? { kind: "committed" } : refused);
        if (asksNothing) return;
        await subject().quarantine.condemn([serverId(1)]);
        expect(await byHand.goOn(to)).toMatchObject({ kind: "committed" });
      },
    );

    test("goes back to a source whose guest is stopped and is to stay so", async () => {
      const stop = await begin("stop");
      await new OperationByHand(cell(), stop.task?.id ?? "").goOn("succeed");
      const { task } = await begin("resize");
      await quarantine();
      expect(await new OperationByHand(cell(), task?.id ?? "").goOn("restoring")).toMatchObject({ kind: "committed" });
    });

    test("does not start a server in ERROR", async () => {
      await cell().resetStatus([{ serverUuid: serverId(1), status: "ERROR" }]);
      await quarantine();
      for (const kind of MAY_START.filter((one) => OPERATIONS[one].allowedFrom.includes("ERROR")))
        expect((await begin(kind)).outcome).toMatchObject({ kind: kind === "evacuate" ? "host-seen" : "quarantined" });
    });
  });
}
