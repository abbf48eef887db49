import { expect, test } from "vitest";
import type { PortVif, ServerPort } from "../../proto/gen/berth/shared.ts";
import { connectPorts, directPorts, readConnection } from "./direct-ports.ts";
import type { HostDevice } from "./host-device.ts";

const vif = (values: Partial<PortVif> = {}): PortVif => ({
  ...{ type: "hw_veb", details: '{"vlan":"105"}', vnicType: "direct", profile: "{}" },
  ...values,
});
const port = (portId: string, values: Partial<ServerPort> = {}): ServerPort => ({
  ...{ portId, networkId: "n", tag: "", networkName: "", addresses: [], slot: 0, floatingAddresses: [] },
  ...{ macAddress: `mac of ${portId}`, vif: vif() },
  ...values,
});
const request = (portId: string, suffix: string, provider = "") => ({
  ...{ portId, suffix, provider, resources: { SRIOV_NET_VF: 1 }, requiredTraits: [], groupId: "" },
});
const macOf = (portId: string) => `made of ${portId}`;
const claim = (mappings: Record<string, string>) => ({ items: [], mappings });

test("a direct port gets a function of the provider of its group, in the slot of its interface", () => {
  const server = {
    ports: [
      port("a", { vif: vif({ type: "ovs", vnicType: "normal" }) }),
      port("b"),
      port("c", { macAddress: undefined }),
    ],
    portRequests: [request("b", "_PORT0"), request("c", "_PORT1", "attached")],
  };
  expect(directPorts(server, claim({ _PORT0: "card" }), { macOf, isNew: true })).toEqual({
    kind: "read",
    ports: [
      { portId: "b", mac: "mac of b", slot: 2, provider: "card", connection: { vlan: 105, isTrusted: false } },
      { portId: "c", mac: "made of c", slot: 3, provider: "attached", connection: { vlan: 105, isTrusted: false } },
    ],
  });
});

test.each([
  ["nothing was claimed for it", []],
  ["its claim names no provider", [request("b", "_PORT0")]],
])("a direct port is refused when %s", (_when, portRequests) => {
  const read = directPorts({ ports: [port("b")], portRequests }, claim({}), { macOf, isNew: true });
  expect(read).toEqual({ kind: "refused", reason: expect.stringContaining("has no virtual function (SRIOV_NET_VF)") });
});

test("a direct port for which nothing was claimed stays an ordinary interface in a server that has it already and moves", () => {
  const server = { ports: [port("b")], portRequests: [] };
  expect(directPorts(server, claim({}), { macOf, isNew: false })).toEqual({ kind: "read", ports: [] });
});

test.each<readonly [string, PortVif | undefined, object | null]>([
  ["a VLAN", vif(), { vlan: 105, isTrusted: false }],
  ["no VLAN", vif({ details: '{"port_filter":false}' }), { vlan: 0, isTrusted: false }],
  ["VLAN 0 as a number", vif({ details: '{"vlan":0}' }), { vlan: 0, isTrusted: false }],
  ["trust, as Nova reads it", vif({ profile: '{"trusted":"true"}' }), { vlan: 105, isTrusted: true }],
  ["trust as JSON's true", vif({ profile: '{"trusted":true}' }), { vlan: 105, isTrusted: true }],
  ["no trust", vif({ profile: '{"trusted":"false"}' }), { vlan: 105, isTrusted: false }],
  ["nothing yet", undefined, null],
])("reads %s from the port's binding", (_what, given, connection) => {
  expect(readConnection({ portId: "p", vif: given })).toEqual({ kind: "read", connection });
});

test.each([
  ["is bound by another driver", vif({ type: "ovs" }), "port p is bound as ovs"],
  ["has a VLAN out of range", vif({ details: '{"vlan":"4095"}' }), 'the VLAN "4095"; 0 to 4094'],
  ["has a VLAN that is no number", vif({ details: '{"vlan":"blue"}' }), 'the VLAN "blue"'],
])("refuses a port that %s", (_which, given, reason) => {
  expect(readConnection({ portId: "p", vif: given })).toEqual({
    kind: "refused",
    reason: expect.stringContaining(reason),
  });
});

const CARD = { resourceClass: "SRIOV_NET_VF", mdev: null, vendorInfo: "8086:154c", physicalNetwork: "physnet1" };
const LAYOUT = {
  ...{ places: [], cores: [] },
  devices: [
    { provider: "one", addresses: ["v0", "v1", "v2"], ...CARD },
    { provider: "two", addresses: ["w0"], ...CARD, physicalNetwork: undefined },
  ],
};
const pci = (address: string): HostDevice => ({ kind: "pci", address });
const direct = (portId: string, provider: string) => ({ portId, provider, mac: "m", slot: 1, connection: null });
const placesOf = (
  devices: readonly HostDevice[],
  ports: ReturnType<typeof direct>[],
  own: readonly HostDevice[] = [],
) => {
  const connected = connectPorts(devices, ports, { layout: LAYOUT, own });
  if (connected.kind === "refused") return connected.reason;
  return connected.devices.map((one) => (one.kind === "pci" ? `${one.address} ${one.port?.portId ?? "-"}` : one.uuid));
};

test("each port has one of the chosen functions of its provider, and the others stay without a port", () => {
  const devices = [pci("w0"), pci("v0"), pci("v1"), pci("v2")];
  const ports = [direct("a", "one"), direct("b", "two"), direct("c", "one")];
  expect(placesOf(devices, ports)).toEqual(["w0 b", "v0 a", "v1 c", "v2 -"]);
  const connected = connectPorts([pci("v0"), pci("w0")], [direct("a", "one")], { layout: LAYOUT, own: [] });
  const { portId, mac, slot, connection } = direct("a", "one");
  const known = { vendorInfo: "8086:154c", physicalNetwork: "physnet1" };
  expect(connected).toEqual({
    kind: "read",
    devices: [{ kind: "pci", address: "v0", port: { portId, mac, slot, connection, ...known } }, pci("w0")],
  });
});

test("a port keeps the function that it has in another guest of its server, whatever the order of the ports", () => {
  const own: readonly HostDevice[] = [
    { kind: "pci", address: "v1", port: { portId: "b", mac: "m", slot: 1, connection: null } },
    { kind: "pci", address: "v0", port: { portId: "c", mac: "m", slot: 2, connection: null } },
  ];
  expect(placesOf([pci("v0"), pci("v1")], [direct("b", "one"), direct("c", "one")], own)).toEqual(["v0 c", "v1 b"]);
  // A new port comes first here, and takes no function that another port has.
  const three = [direct("a", "one"), direct("b", "one"), direct("c", "one")];
  expect(placesOf([pci("v0"), pci("v1"), pci("v2")], three, own)).toEqual(["v0 c", "v1 b", "v2 a"]);
});

test("a claim with fewer functions than ports is refused", () => {
  expect(placesOf([pci("v0")], [direct("a", "one"), direct("b", "one")])).toContain("port b has the VNIC type direct");
});
