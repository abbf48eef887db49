import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { PortResourceRequest } from "../../proto/gen/berth/shared.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../../test/contract/networking.contract.ts";
import { PortBinder, type PortStep } from "./port-binder.ts";

let neutron: MemoryNetworking;
let holdsTask: () => Promise<boolean>;
/** The request groups of the server's port, and the providers that serve them on each host. */
let portRequests: PortResourceRequest[];
/** Whether the cell's database still has the claim, and the groups that it serves by nothing. */
let isClaimKnown: boolean;
let unserved: readonly string[];
beforeEach(() => {
  neutron = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(neutron);
  holdsTask = async () => true;
  portRequests = [];
  isClaimKnown = true;
  unserved = [];
});

const hosts = () => neutron.all().map(({ host }) => host);

function bindTo(host: string, step: PortStep = "bind") {
  const { uuid } = serverSpec(1);
  const port = neutron.all()[0] ?? neutron.putPort({ projectId: "one", networkId: OWN_NETWORK, deviceId: uuid });
  const own = {
    portId: port.id,
    networkId: OWN_NETWORK,
    tag: "",
    networkName: "own",
    addresses: [],
    floatingAddresses: [],
    slot: 0,
  };
  const requests = portRequests.map((request) => ({ ...request, portId: port.id }));
  const server = serverSpec(1, { ports: [{ ...own, macAddress: port.macAddress }], portRequests: requests });
  const served = requests.filter(({ suffix }) => !unserved.includes(suffix));
  const mappings = Object.fromEntries(served.map(({ suffix }) => [suffix, `${suffix} of ${host}`]));
  const claimed = async ([attemptId]: readonly string[]) => [
    attemptId === `to ${host}` && isClaimKnown ? { items: [], mappings } : null,
  ];
  const binder = new PortBinder(
    { networking: neutron, store: { holdsTask: () => holdsTask(), claimed }, clock: new ManualClock() },
    { portBindTimeoutMs: 0 },
  );
  const tenure = { taskId: randomUUID(), serverUuid: uuid, epoch: 1 };
  return binder.bind(server, { host, attemptId: `to ${host}` }, { isWanted: () => true, tenure }, { step });
}

test("a conductor whose task another one has taken does not bind a port back to an earlier host", async () => {
  expect(await bindTo("present")).toMatchObject({ kind: "bound" });
  holdsTask = async () => false;
  expect(await bindTo("earlier")).toEqual({ kind: "unwanted" });
  expect(hosts()).toEqual(["present"]);
});

test("a conductor that is cut off from its cell's database binds no port, and says why", async () => {
  holdsTask = () => Promise.reject(new Error("the connection was lost"));
  expect(await bindTo("host")).toMatchObject({
    kind: "failed",
    reason: expect.stringContaining("the connection was lost"),
  });
  expect(hosts()).toEqual([""]);
});

const GROUP = { portId: "", resources: { NET_BW_EGR_KILOBIT_PER_SEC: 100 }, requiredTraits: [], provider: "" };
const FORMS = [
  ["the older form", [{ ...GROUP, suffix: "_PORT0", groupId: "" }], (host: string) => `_PORT0 of ${host}`],
  [
    "groups",
    [
      { ...GROUP, suffix: "_PORT0_0", groupId: "g-0" },
      { ...GROUP, suffix: "_PORT0_1", groupId: "g-1" },
    ],
    (host: string) => ({ "g-0": `_PORT0_0 of ${host}`, "g-1": `_PORT0_1 of ${host}` }),
  ],
] as const;
const shown = () => neutron.all().map(({ host, profile }) => [host, profile]);

test.each(FORMS)(
  "Neutron is told which providers serve a port's request, in %s, on each host to which the port is bound",
  async (_, requests, allocationOn) => {
    portRequests = [...requests];
    expect(await bindTo("first")).toMatchObject({ kind: "bound" });
    expect(shown()).toEqual([["first", { allocation: allocationOn("first") }]]);
    neutron.putPort({ ...neutron.all()[0]!, profile: { ...neutron.all()[0]!.profile, capabilities: ["switchdev"] } });
    expect(await bindTo("second")).toMatchObject({ kind: "bound" });
    expect(shown()).toEqual([["second", { allocation: allocationOn("second"), capabilities: ["switchdev"] }]]);
    expect(await bindTo("first", "return")).toMatchObject({ kind: "bound" });
    expect(shown()).toEqual([["first", { allocation: allocationOn("first"), capabilities: ["switchdev"] }]]);
  },
);

test.each(FORMS)(
  "a binding that is prepared for a live migration names the destination's providers, in %s, and the source's keeps its own",
  async (_, requests, allocationOn) => {
    portRequests = [...requests];
    await bindTo("source");
    const { id } = neutron.all()[0]!;
    // An earlier migration has left a binding with the providers of its claim.
    await neutron.createBinding(id, { host: "destination", vnicType: "normal", profile: { allocation: "earlier" } });
    expect(await bindTo("destination", "prepare")).toMatchObject({ kind: "bound" });
    const bindings = (await neutron.bindings(id)) ?? [];
    expect(bindings.map(({ host, profile }) => [host, profile.allocation])).toEqual([
      ["source", allocationOn("source")],
      ["destination", allocationOn("destination")],
    ]);
    expect(await bindTo("destination")).toMatchObject({ kind: "bound" });
    expect(shown()).toEqual([["destination", { allocation: allocationOn("destination") }]]);
  },
);

test("a port of which the claim serves a group by nothing names no provider any longer, and one whose claim is unknown stays as it is", async () => {
  portRequests = [...FORMS[1][1]];
  await bindTo("host");
  const told = shown();
  isClaimKnown = false;
  expect(await bindTo("host")).toMatchObject({ kind: "bound" });
  expect(shown()).toEqual(told);
  isClaimKnown = true;
  unserved = ["_PORT0_1"];
  expect(await bindTo("host")).toMatchObject({ kind: "bound" });
  expect(shown()).toEqual([["host", {}]]);
});

test("Neutron knows the destination while a binding is prepared there, and no longer when the server has arrived or stays", async () => {
  await bindTo("source");
  const bindings = async () =>
    ((await neutron.bindings(neutron.all()[0]!.id)) ?? []).map(({ host, profile }) => [host, profile]);
  expect(await bindTo("first", "prepare")).toMatchObject({ kind: "bound" });
  expect(await bindTo("second", "prepare")).toMatchObject({ kind: "bound" });
  const { revision } = neutron.all()[0]!;
  expect(await bindTo("second", "prepare")).toMatchObject({ kind: "bound" });
  expect([await bindings(), neutron.all()[0]?.revision]).toEqual([
    [
      ["source", { migrating_to: "second" }],
      ["second", {}],
    ],
    revision,
  ]);
  expect(await bindTo("source", "return")).toMatchObject({ kind: "bound" });
  expect(await bindings()).toEqual([["source", {}]]);
  await bindTo("second", "prepare");
  expect(await bindTo("second")).toMatchObject({ kind: "bound" });
  expect(shown()).toEqual([["second", {}]]);
});

test("Neutron refuses no change for its revision while a binding is prepared, which raises the port's revision", async () => {
  await bindTo("source");
  const outcomes: string[] = [];
  const update = neutron.updatePort.bind(neutron);
  neutron.updatePort = async (...by) => {
    const outcome = await update(...by);
    outcomes.push(outcome.kind);
    return outcome;
  };
  expect(await bindTo("first", "prepare")).toMatchObject({ kind: "bound" });
  expect(await bindTo("second", "prepare")).toMatchObject({ kind: "bound" });
  expect(outcomes).toEqual(["updated", "updated"]);
});

test("a conductor whose task another one has taken tells Neutron of no destination", async () => {
  await bindTo("source");
  let asked = 0;
  holdsTask = async () => {
    asked += 1;
    return asked <= 1;
  };
  expect(await bindTo("destination", "prepare")).toEqual({ kind: "unwanted" });
  expect(shown()).toEqual([["source", {}]]);
});

test("a port that is bound to the host with the providers of an earlier claim is told of the present ones", async () => {
  await bindTo("host");
  portRequests = [...FORMS[0][1]];
  expect(await bindTo("host")).toMatchObject({ kind: "bound" });
  expect(shown()).toEqual([["host", { allocation: "_PORT0 of host" }]]);
  const { revision } = neutron.all()[0]!;
  await bindTo("host");
  expect(neutron.all()[0]?.revision).toBe(revision);
});
