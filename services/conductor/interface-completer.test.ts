import { expect, test } from "vitest";
import type { AgentStream } from "../../core/agent/link.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import type { Home } from "../../core/tasks/home.ts";
import type { Server } from "../../core/tasks/server.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import type { ServerPort } from "../../proto/gen/berth/shared.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId, serverSpec } from "../../test/contract/cell-fixtures.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { InterfaceCompleter } from "./interface-completer.ts";

const PORT: ServerPort = {
  ...{ portId: "one", networkId: "n", tag: "", networkName: "", addresses: [], floatingAddresses: [], slot: 0 },
};

/** Servers with one port and revision 3, whose guests run on host `h` and have obeyed revision 2. */
function setUp(changes: Partial<Server> = {}, ports: readonly ServerPort[] = [PORT]) {
  const clock = new ManualClock();
  const sent: ConductorMessage["body"][] = [];
  const asked: (readonly string[])[] = [];
  const failures: unknown[] = [];
  const connect = () => ({ send: ({ body }: ConductorMessage) => sent.push(body) }) as unknown as AgentStream;
  let stream = connect();
  let reading: () => Promise<undefined> = async () => undefined;
  const completer = new InterfaceCompleter({
    clock,
    streamOf: () => stream,
    events: { databaseFailed: (_, error) => failures.push(error) },
    store: {
      servers: async (uuids) => {
        asked.push(uuids);
        await reading();
        const spec = { ...serverSpec(1), ports };
        const row = { spec, host: "h", attemptId: "t/0", status: "ACTIVE", taskState: null, revision: 3, ...changes };
        return uuids.map((uuid) => ({ ...row, uuid }) as unknown as Server);
      },
    },
  });
  const guest: FoundGuest = { host: "h", serverUuid: serverId(1), attemptId: "t/0", state: "running" };
  const home: Home = {
    ...{ serverUuid: serverId(1), status: "ACTIVE", host: "h", attemptId: "t/0", revision: 3, busy: false, move: null },
  };
  const settle = async () => {
    clock.advance(1_000);
    await completer.stop();
  };
  return {
    ...{ clock, sent, asked, failures, completer, guest, home, settle },
    /** The host connects again. */
    reconnect: () => {
      stream = connect();
    },
    readBy: (read: () => Promise<undefined>) => {
      reading = read;
    },
  };
}

test("a guest whose server was changed after its last order is told its server's interfaces", async () => {
  const { completer, guest, home, sent, settle } = setUp();
  completer.look(guest, home, 2);
  await settle();
  const { state: _, ...name } = guest;
  const interfaces = { interfaces: [expect.objectContaining({ portId: "one" })] };
  expect(sent).toEqual([{ $case: "completeInterfaces", value: { ...name, interfaces, revision: 3 } }]);
});

test.each<[string, Partial<FoundGuest>, Partial<Home>]>([
  ["has obeyed all changes of its server", {}, { revision: 2 }],
  ["does not run", { state: "stopped" }, {}],
  ["is suspended", { state: "suspended" }, {}],
  ["belongs to a server with an open task", {}, { busy: true }],
  ["belongs to a server that is to be confirmed", {}, { status: "VERIFY_RESIZE" }],
  ["is not at home", {}, { host: "other" }],
  ["is of an earlier attempt", { attemptId: "s/0" }, {}],
])("the row of a guest is not read that %s", async (_, found, row) => {
  const { completer, guest, home, asked, settle } = setUp();
  completer.look({ ...guest, ...found }, { ...home, ...row }, 2);
  await settle();
  expect(asked).toEqual([]);
});

test.each<[string, Partial<Server>]>([
  ["moves", { taskState: "migrating" }],
  ["has moved", { host: "other" }],
  ["was built again", { attemptId: "u/0" }],
  ["was stopped", { status: "SHUTOFF" }],
])("a host is told nothing about a server that %s before the row is read", async (_, changes) => {
  const { completer, guest, home, asked, sent, settle } = setUp(changes);
  completer.look(guest, home, 2);
  await settle();
  expect([asked.length, sent]).toEqual([1, []]);
});

test("a host that is lost while the row is read is told nothing, and one that comes back is told at once", async () => {
  const world = setUp();
  const { completer, guest, home, sent, clock } = world;
  const read = Promise.withResolvers<undefined>();
  world.readBy(() => read.promise);
  completer.look(guest, home, 2);
  clock.advance(0);
  world.reconnect();
  read.resolve(undefined);
  completer.look(guest, home, 2);
  await eventually("the next look", () => clock.pending === 1);
  expect(sent).toEqual([]);
  clock.advance(1_000);
  await eventually("the message", () => sent.length === 1);
  await completer.stop();
});

test("a host is told once for each revision, again after ten minutes, and again when it has connected once more", async () => {
  const world = setUp();
  const { completer, guest, home, asked, sent, clock } = world;
  const look = async (revision = 3) => {
    const before = asked.length;
    completer.look(guest, { ...home, revision }, 2);
    const isDue = clock.pending > 0;
    clock.advance(1_000);
    if (isDue) await eventually("the end of the look", () => asked.length > before);
    await new Promise((resolve) => setImmediate(resolve));
    return sent.length;
  };
  expect(await look()).toBe(1);
  expect(await look()).toBe(1);
  clock.advance(600_000);
  expect(await look()).toBe(2);
  world.reconnect();
  expect(await look()).toBe(3);
  expect(await look(4)).toBe(4);
  await completer.stop();
});

test("a server without ports is read once, and its host is told nothing", async () => {
  const { completer, guest, home, asked, sent, clock } = setUp({}, []);
  completer.look(guest, home, 2);
  clock.advance(0);
  await eventually("the look", () => asked.length === 1);
  await new Promise((resolve) => setImmediate(resolve));
  completer.look(guest, home, 2);
  expect([clock.pending, sent]).toEqual([0, []]);
  await completer.stop();
});

test("however many hosts connect, the database is asked once a second for some servers", async () => {
  const { completer, guest, home, asked, clock } = setUp();
  for (let index = 0; index < 400; index += 1) {
    const at = { serverUuid: serverId(index), attemptId: `${index}/0` };
    completer.look({ ...guest, ...at }, { ...home, ...at }, 2);
  }
  clock.advance(0);
  await eventually("the first question", () => asked.length === 1 && clock.pending === 1);
  clock.advance(999);
  expect(asked).toHaveLength(1);
  clock.advance(1);
  await eventually("the second question", () => asked.length === 2 && clock.pending === 1);
  expect(asked.map((uuids) => uuids.length)).toEqual([150, 150]);
  await completer.stop();
});

test("a database that fails is reported, and the next comparison begins again", async () => {
  const world = setUp();
  const { completer, guest, home, sent, failures, clock } = world;
  world.readBy(() => Promise.reject(new Error("the database is away")));
  completer.look(guest, home, 2);
  clock.advance(0);
  await eventually("the failure", () => failures.length === 1);
  world.readBy(async () => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  completer.look(guest, home, 2);
  clock.advance(1_000);
  await eventually("the message", () => sent.length === 1);
  await completer.stop();
});
