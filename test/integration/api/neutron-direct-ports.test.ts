import { afterEach, beforeEach, expect, test } from "vitest";
import type { NeutronPort } from "../../../core/stores/networking.ts";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { OWN_NETWORK, putContractNetworks, putVlanNetwork } from "../../contract/networking.contract.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
let vlanNetwork: string;
beforeEach(async () => {
  rig = await ApiRig.start({ networks: "neutron", auth: "noauth2", quotas: QUOTA_DEFAULTS.unlimited });
  putContractNetworks(rig.networking);
  vlanNetwork = putVlanNetwork(rig.networking);
});
afterEach(() => rig.close());

const AS = { "x-auth-token": "ann:one", "openstack-api-version": "compute 2.90" };
const userPort = (values: Partial<NeutronPort> = {}) =>
  rig.networking.putPort({ projectId: "one", networkId: vlanNetwork, vnicType: "direct", ...values });
const create = (...ports: readonly NeutronPort[]) =>
  rig.post(
    "/v2.1/servers",
    { server: { name: "web", flavorRef: "1", networks: ports.map(({ id }) => ({ port: id })) } },
    AS,
  );

test("a direct port asks for a virtual function of a card of its physical network, and other ports for nothing", async () => {
  const ports = [userPort(), userPort({ networkId: OWN_NETWORK, vnicType: "normal" }), userPort()];
  const answer = await create(...ports);
  expect([answer.statusCode, answer.body]).toEqual([202, expect.anything()]);
  const [record] = await rig.store.requests([answer.json().server.id]);
  const group = {
    resources: { SRIOV_NET_VF: 1 },
    requiredTraits: ["CUSTOM_PHYSNET_PHYSNET1"],
    provider: "",
    groupId: "",
  };
  expect(record?.spec.portRequests).toEqual([
    { portId: ports[0]!.id, suffix: "_PORT0", ...group },
    { portId: ports[2]!.id, suffix: "_PORT1", ...group },
  ]);
});

test.each<readonly [string, Partial<NeutronPort>, string]>([
  [
    "of another VNIC type",
    { vnicType: "macvtap" },
    "has the VNIC type macvtap, with which Berth cannot connect servers",
  ],
  ["on a network that no card is connected to", { networkId: OWN_NETWORK }, "has no physical network"],
])("a port %s is refused", async (_which, values, message) => {
  const answer = await create(userPort(values));
  expect([answer.statusCode, answer.json().badRequest.message]).toEqual([400, expect.stringContaining(message)]);
});

test("a direct port cannot be given to a server that exists, and stays as it is", async () => {
  const id = (await create(userPort({ vnicType: "normal" }))).json().server.id;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  const port = userPort();
  const body = { interfaceAttachment: { port_id: port.id } };
  const answer = await rig.post(`/v2.1/servers/${id}/os-interface`, body, AS);
  expect([answer.statusCode, answer.json().badRequest.message]).toEqual([
    400,
    expect.stringContaining("can only be given to a server when the server is created"),
  ]);
  expect(rig.networking.all()).toContainEqual(port);
});

test("a port that leaves its server no longer names the host's function, and keeps what its user has written", async () => {
  const profile = { trusted: "true", pci_slot: "0000:3b:02.0", pci_vendor_info: "8086:154c" };
  const port = userPort({ profile });
  const id = (await create(port)).json().server.id;
  await rig.delete(`/v2.1/servers/${id}`, AS);
  await eventually("the end of the port's server", () => rig.networking.all()[0]?.deviceId === "");
  expect(rig.networking.all()).toMatchObject([{ id: port.id, profile: { trusted: "true" } }]);
  expect(rig.networking.all()[0]?.profile).toEqual({ trusted: "true" });
});
