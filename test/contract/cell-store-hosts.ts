import { expect, test } from "vitest";
import { UNKNOWN_HYPERVISOR } from "../../core/ledger/hypervisor-facts.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import { closingOf, deleteTask, dispatchOf, providerOf, serverId, taskId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const NEVER_MS = 3_600_000;
const hostOf = (host: number): { readonly name: string; readonly rootProvider: string } => ({
  name: `host-${host}`,
  rootProvider: providerOf(host),
});

/** The home of a server without an operation. */
const quiet = { revision: 0, busy: false, move: null };

/** The guarantees for the processes that keep hosts. */
export function hostContract(cell: () => CellUnderTest): void {
  test("hosts are up under the agent that reported them last", async () => {
    const { store } = cell();
    await store.hostsUp("agent-1", [hostOf(1), hostOf(0), hostOf(1)]);
    await store.hostsUp("agent-2", [hostOf(1)]);
    expect(await store.hosts()).toEqual([
      { ...hostOf(0), agentId: "agent-1", up: true, disabled: false, hypervisor: UNKNOWN_HYPERVISOR },
      { ...hostOf(1), agentId: "agent-2", up: true, disabled: false, hypervisor: UNKNOWN_HYPERVISOR },
    ]);
    await store.hostsUp("agent-1", [{ ...hostOf(0), rootProvider: providerOf(7) }]);
    expect(await store.hosts()).toMatchObject([{ rootProvider: providerOf(7) }, {}]);
  });

  test("a host keeps its hypervisor facts until others are reported", async () => {
    const { store } = cell();
    const hypervisor = { ...UNKNOWN_HYPERVISOR, type: "QEMU", hostIp: "10.0.0.1", metrics: { load: 0.5 } };
    await store.hostsUp("agent-1", [{ ...hostOf(0), hypervisor }]);
    await store.hostsUp("agent-1", [hostOf(0)]);
    expect(await store.hosts()).toMatchObject([{ hypervisor }]);
    const newer = { ...hypervisor, version: 7_000_000 };
    await store.hostsUp("agent-1", [{ ...hostOf(0), hypervisor: newer }]);
    expect(await store.hosts()).toMatchObject([{ hypervisor: newer }]);
  });

  test("hosts of a silent agent go down, once", async () => {
    const { store } = cell();
    await store.hostsUp("agent-1", [hostOf(1), hostOf(0)]);
    expect(await store.expireAgents(NEVER_MS)).toEqual({ down: [], heldUp: [] });
    expect(await store.expireAgents(0)).toEqual({ down: ["host-0", "host-1"], heldUp: [] });
    expect(await store.expireAgents(0)).toEqual({ down: [], heldUp: [] });
    expect(await store.hosts()).toMatchObject([{ up: false }, { up: false }]);
  });

  test("lists which hosts are up and how long ago their agents were seen, by name", async () => {
    const { store } = cell();
    await store.hostsUp("agent-1", [hostOf(1), hostOf(0)]);
    const seenAgoMs = expect.toSatisfy((ms: number) => ms >= 0 && ms < NEVER_MS);
    expect(await store.sightings(["host-1", "host-0", "host-9", "host-1"])).toEqual([
      { name: "host-0", agentId: "agent-1", up: true, forcedDown: false, seenAgoMs },
      { name: "host-1", agentId: "agent-1", up: true, forcedDown: false, seenAgoMs },
    ]);
    await store.expireAgents(0);
    expect(await store.sightings(["host-0"])).toEqual([
      { name: "host-0", agentId: "agent-1", up: false, forcedDown: false, seenAgoMs },
    ]);
  });

  test("tells which host a root provider belongs to, and whether the provider is in the ledger", async () => {
    const { store } = cell();
    await store.hostsUp("agent-1", [hostOf(0), { ...hostOf(8), rootProvider: providerOf(0) }]);
    await store.hostsUp("agent-2", [{ ...hostOf(9), rootProvider: providerOf(2) }]);
    await store.hostsUp("agent-2", [{ ...hostOf(9), rootProvider: providerOf(99) }]);
    expect(await store.knownRoots([1, 0, 99, 98, 0].map(providerOf))).toEqual([
      { name: "host-1", hosts: [] },
      { name: "host-0", hosts: ["host-0", "host-8"] },
      { name: null, hosts: ["host-9"] },
      { name: null, hosts: [] },
      { name: "host-0", hosts: ["host-0", "host-8"] },
    ]);
  });

  test("finds a host of another agent whose devices may have the name of a new host, or that could be a device of it", async () => {
    const { store } = cell();
    const named = (name: string) => ({ ...hostOf(0), name });
    await store.hostsUp("agent-1", ["rack", "rack_1_a", "Rack_1", "node_", "x%_y"].map(named));
    const of = (agentId: string, names: readonly string[]) =>
      store.hostsNamedAlike(names.map((name) => ({ name, agentId })));
    expect(await of("agent-2", ["rack_2", "rack_1", "rack_1_a_b_c", "Rack", "x%", "rack__1"])).toEqual([
      ...["rack", "rack", "rack", "Rack_1", "x%_y", "rack"],
    ]);
    // Known hosts keep their names. Nobody can take the name of a device that has none.
    expect(await of("agent-2", ["rack", "rack_1_a", "node", "rack2", "rack_", "rac", "x_", "x", "_rack"])).toEqual(
      Array(9).fill(null),
    );
    expect(await of("agent-1", ["rack_2", "Rack"])).toEqual([null, null]);
    expect(await of("agent-2", [])).toEqual([]);
  });

  test("an agent that is seen again is reported as long as one of its hosts is down, and brings the host up itself", async () => {
    const { store } = cell();
    await store.hostsUp("agent-1", [hostOf(0)]);
    await store.hostsUp("agent-2", [hostOf(1)]);
    const seen = (...agentIds: readonly string[]) => store.agentsSeen(agentIds, NEVER_MS);
    expect(await seen("agent-1", "agent-2", "unknown")).toEqual({ down: [], othersUnseen: false });
    await store.expireAgents(0);
    expect(await seen("agent-2", "agent-1", "unknown", "agent-2")).toMatchObject({ down: ["agent-1", "agent-2"] });
    expect(await store.hosts()).toMatchObject([{ up: false }, { up: false }]);
    await store.hostsUp("agent-1", [hostOf(0)]);
    expect(await seen("agent-1", "agent-2")).toMatchObject({ down: ["agent-2"] });
    expect(await store.hosts()).toMatchObject([{ up: true }, { up: false }]);
  });

  test("whether another agent than the seen ones is silent is answered just as long as one of its hosts is up", async () => {
    const { store } = cell();
    await store.hostsUp("agent-1", [hostOf(0)]);
    const isSilent = async (unseenMs: number, ...agentIds: readonly string[]) =>
      (await store.agentsSeen(agentIds, unseenMs)).othersUnseen;
    expect(await isSilent(0)).toBe(true);
    expect(await isSilent(NEVER_MS)).toBe(false);
    expect(await isSilent(0, "agent-2")).toBe(true);
    expect(await isSilent(0, "agent-2", "agent-1")).toBe(false);
    expect(await isSilent(NEVER_MS, "agent-2")).toBe(false);
    await store.expireAgents(0);
    expect(await isSilent(0, "agent-2")).toBe(false);
  });

  test("homes and residents name where each server may run", async () => {
    const { store } = cell();
    await store.dispatch([1, 2, 3].map((server) => dispatchOf({ server, task: server, hosts: [server % 2] })));
    await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
    await store.close([closingOf(9)]);
    const home = (server: number, status: string) => ({
      ...quiet,
      serverUuid: serverId(server),
      status,
      host: `host-${server % 2}`,
      attemptId: attemptIdOf(taskId(server), 0),
    });
    expect(await store.homes([serverId(3), serverId(9), "nonsense", serverId(8), serverId(1)])).toEqual([
      home(3, "BUILD"),
      home(1, "ACTIVE"),
    ]);
    expect(await store.residents(["nowhere", "host-1"])).toEqual([[], [home(1, "ACTIVE"), home(3, "BUILD")]]);
    expect(await store.serverCountByHost()).toEqual(
      new Map([
        ["host-0", 1],
        ["host-1", 2],
      ]),
    );
  });

  test("the record of a host has its sighting, its residents and the incarnation, in the order in which hosts are asked for", async () => {
    const { store } = cell();
    await store.hostsUp("agent-1", [hostOf(1)]);
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [1] })]);
    const [sighting] = await store.sightings(["host-1"]);
    const incarnation = await store.incarnation();
    const nothing = { sighting: null, residents: [], held: [], quarantined: [], incarnation };
    const known = {
      ...nothing,
      sighting: { ...sighting, seenAgoMs: expect.toSatisfy((ms: number) => ms >= 0 && ms < NEVER_MS) },
      residents: await store.residents(["host-1"]).then(([residents]) => residents),
    };
    expect(known.residents).toMatchObject([{ serverUuid: serverId(1) }]);
    expect(await store.hostRecords(["host-1", "nowhere", "host-1"])).toEqual([known, nothing, known]);
    expect(await store.hostRecords(["host-1", "nowhere"], { withResidents: false })).toEqual([
      { ...known, residents: [] },
      nothing,
    ]);
    expect(await store.hostRecords([])).toEqual([]);
  });

  test("a server that is gone has no home, but is known as DELETED", async () => {
    const { store } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
    await store.requestDelete([deleteTask(1, 11)]);
    expect(await store.residents(["host-0"])).toMatchObject([[{ serverUuid: serverId(1) }]]);
    await store.commitDeleted([tenureOf(await cell().take(11))]);
    expect(await store.homes([serverId(1)])).toEqual([
      { ...quiet, serverUuid: serverId(1), status: "DELETED", host: null, attemptId: null },
    ]);
    expect(await store.residents(["host-0"])).toEqual([[]]);
  });
}
