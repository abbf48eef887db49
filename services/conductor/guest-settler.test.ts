import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import type { AgentStream } from "../../core/agent/link.ts";
import type { Home } from "../../core/tasks/home.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import type { GuestInterfaces } from "../../proto/gen/berth/shared.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { overriding } from "../../runtime/overriding.ts";
import { conductorId, serverId } from "../../test/contract/cell-fixtures.ts";
import { ConductorEvents } from "./events.ts";
import type { StartVerdict } from "./guest-judge.ts";
import { GuestSettler } from "./guest-settler.ts";
import { StepCommitter } from "./step-committer.ts";

const GUEST = { host: "h", serverUuid: serverId(1), attemptId: "t/0", state: "running" } as const;

interface Subject {
  readonly settler: GuestSettler;
  readonly raised: number[];
  /** The revisions of which the judge was asked whether a guest may be started. */
  readonly judged: number[];
  /** What the completer of interfaces was called with. */
  readonly looked: unknown[];
}

function settlerOf(
  home: Partial<Home>,
  verdict: StartVerdict = "start",
  streamOf: () => AgentStream | null = () => null,
  isBeside = false,
  bindHome: () => Promise<GuestInterfaces | null> = async () => null,
): Subject {
  const clock = new ManualClock();
  const events = new ConductorEvents({
    ...{ logger: pino({ level: "silent" }), registry: new Registry(), clock, taskCount: () => 0 },
  });
  const row = (): Home => ({
    ...{ serverUuid: GUEST.serverUuid, status: "ACTIVE", host: "h", attemptId: "t/0", revision: 3, busy: false },
    ...{ move: null, ...home },
  });
  const store = overriding(new MemoryCellStore({ clock, ledger: new MemoryLedger() }), { homes: async () => [row()] });
  const stop = new AbortController().signal;
  const commits = new StepCommitter({ store, conductorId: conductorId(1), clock, events, stop });
  const raised: number[] = [];
  const judged: number[] = [];
  const judge = {
    judgeStart: async (_: unknown, { revision }: { readonly revision: number }) => {
      judged.push(revision);
      return verdict;
    },
    mayDestroy: async () => true,
    isBesideQuarantined: async () => isBeside,
    raise: async (_: string, revision: number) => void raised.push(revision),
    ...{ wanted: () => undefined, isQuarantined: () => false, onlyThere: () => undefined },
  };
  const stopServer = async () => undefined;
  const resumeSnapshot = async () => true;
  const ports = { bindHome };
  const looked: unknown[] = [];
  const interfaces = { look: (...asked: unknown[]) => void looked.push(asked) };
  return {
    settler: new GuestSettler({
      ...{ store, commits, judge, ports, interfaces, clock, events, streamOf, stopServer, resumeSnapshot },
    }),
    ...{ raised, judged, looked },
  };
}

test("raises a row above the order that its guest has obeyed, so that the next order is obeyed, too", async () => {
  const { settler, raised } = settlerOf({});
  await settler.settle(GUEST, { revision: 7, incarnation: "" });
  expect(raised).toEqual([8]);
});

test("raises a row above an order that a guest which runs was given in vain, but not for one that stands still", async () => {
  const { settler, raised } = settlerOf({});
  await settler.settle({ ...GUEST, state: "stopped" }, { revision: 3, heard: 7, incarnation: "" });
  expect(raised).toEqual([]);
  await settler.settle({ ...GUEST, state: "running" }, { revision: 3, heard: 7, incarnation: "" });
  expect(raised).toEqual([8]);
});

test("raises nothing for a revision that no honest guest has, since the server would take it to its next host", async () => {
  const { settler, raised } = settlerOf({});
  await settler.settle(GUEST, { revision: 1_000_000_001, incarnation: "" });
  await settler.settle(GUEST, { revision: 2_000_000_000, incarnation: "" });
  expect(raised).toEqual([]);
});

test("a comparison has the interfaces of a guest that stays as it is looked after, and a task that is done with the guest does not", async () => {
  const { settler, looked } = settlerOf({});
  await settler.settle(GUEST);
  expect(looked).toEqual([]);
  await settler.settle(GUEST, { revision: 2, incarnation: "" });
  expect(looked).toEqual([[GUEST, expect.objectContaining({ revision: 3 }), 2]]);
  await settler.settle({ ...GUEST, state: "stopped" }, { revision: 2, incarnation: "" });
  expect(looked).toHaveLength(1);
});

const HALTED = { ...GUEST, state: "stopped" } as const;
const FORGOTTEN = { revision: 7, incarnation: "before" };

test("a guest that was halted by a forgotten order stays undecided while its server is built again, and raises nothing", async () => {
  const home: Partial<Home> = { status: "BUILD" };
  const { settler, raised } = settlerOf(home);
  await settler.settle(HALTED, FORGOTTEN);
  expect([settler.isUndecided(HALTED), raised]).toEqual([true, []]);
});

test("raises nothing for a guest that stays halted, so that it refuses a start of its server, which may run elsewhere", async () => {
  const { settler, raised } = settlerOf({ status: "SHUTOFF" });
  await settler.settle(HALTED, FORGOTTEN);
  await settler.settle(HALTED, { ...FORGOTTEN, incarnation: "" });
  expect([settler.isUndecided(HALTED), raised]).toEqual([false, []]);
});

test("a guest that was halted by a forgotten order stays undecided when a task is done with it during the comparison", async () => {
  const home = { busy: true };
  const { settler } = settlerOf(home);
  await settler.settle(HALTED, FORGOTTEN);
  home.busy = false;
  await settler.settle(HALTED);
  expect(settler.isUndecided(HALTED)).toBe(true);
  await settler.settle(HALTED, FORGOTTEN);
  expect(settler.isUndecided(HALTED)).toBe(false);
});

test("a halted guest that could not be judged is judged again by the next comparison", async () => {
  const { settler, raised, judged } = settlerOf({}, "undecided");
  await settler.settle(HALTED, FORGOTTEN);
  expect([settler.isUndecided(HALTED), raised]).toEqual([true, []]);
  await settler.settle(HALTED, FORGOTTEN);
  expect(judged).toEqual([7, 7]);
});

test("a halted guest whose server is uncertain now is decided, and nothing is raised for a start", async () => {
  const { settler, raised } = settlerOf({}, "uncertain");
  await settler.settle(HALTED, FORGOTTEN);
  expect([settler.isUndecided(HALTED), raised]).toEqual([false, []]);
});

test("a revision that no honest guest has does not reach the row of an uncertain server", async () => {
  const { settler, judged } = settlerOf({}, "uncertain");
  await settler.settle(HALTED, { ...FORGOTTEN, revision: 2_000_000_000 });
  expect(judged).toEqual([1_000_000_000]);
});

test.each([
  ["start of a guest that a task is done with", { state: "prepared" }, null, false],
  ["start of a guest that a task is done with", { state: "prepared" }, null, true],
  ["end of a forgotten rescue", { state: "rescued" }, { revision: 3, incarnation: "" }, false],
  ["end of a forgotten rescue", { state: "rescued" }, { revision: 3, incarnation: "" }, true],
] as const)(
  "orders no %s beside another guest in quarantine (%o, %o, beside: %s)",
  async (_, state, found, isBeside) => {
    const sent: string[] = [];
    const stream: AgentStream = {
      closed: false,
      send: ({ body }: ConductorMessage) => void sent.push(String(body?.$case)),
      ...{ onMessages: () => {}, onClose: () => {}, close: () => {} },
    };
    const { settler } = settlerOf({}, "start", () => stream, isBeside);
    await settler.settle({ ...GUEST, ...state }, found);
    expect(sent).toHaveLength(isBeside ? 0 : 1);
  },
);

test("an order that follows from the row as it was before the host was lost is not given to the host that came back", async () => {
  const sent: string[] = [];
  const streamNamed = (name: string): AgentStream => ({
    closed: false,
    send: ({ body }: ConductorMessage) => void sent.push(`${name} ${body?.$case}`),
    ...{ onMessages: () => {}, onClose: () => {}, close: () => {} },
  });
  let stream = streamNamed("first");
  const { settler } = settlerOf({}, "start", () => stream);
  const settling = settler.settle({ ...GUEST, state: "prepared" });
  stream = streamNamed("second");
  await settling;
  expect(sent).toEqual([]);
  await settler.settle({ ...GUEST, state: "prepared" });
  expect(sent).toEqual(["second start"]);
});

test("a guest that is started has the interfaces with which its ports were bound, and one that moved meanwhile is not started", async () => {
  const interfaces = { interfaces: [{ portId: "p", slot: 1, macAddress: "fa:16:3e:00:00:01", vif: undefined }] };
  const sent: ConductorMessage[] = [];
  const stream: AgentStream = {
    closed: false,
    send: (message: ConductorMessage) => void sent.push(message),
    ...{ onMessages: () => {}, onClose: () => {}, close: () => {} },
  };
  const home: Partial<Home> = {};
  const bind = { onBind: () => {} };
  const { settler } = settlerOf(
    home,
    "start",
    () => stream,
    false,
    async () => {
      bind.onBind();
      return interfaces;
    },
  );
  await settler.settle({ ...GUEST, state: "prepared" });
  expect(sent).toMatchObject([{ body: { $case: "start", value: { interfaces } } }]);
  bind.onBind = () => Object.assign(home, { busy: true });
  await settler.settle({ ...GUEST, state: "prepared" });
  expect(sent).toHaveLength(1);
});
