import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hostName } from "../../contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks, SHARED_NETWORK } from "../../contract/networking.contract.ts";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  // Each token is the id of its member's project, as in the twin of Neutron.
  rig = await ApiRig.start({ networks: "neutron", auth: "keystone" }, null, async ({ headers }) => {
    const projectId = String(headers["x-auth-token"]);
    return { userId: `user-of-${projectId}`, projectId, systemScope: null, roles: ["member", "reader"] };
  });
  putContractNetworks(rig.networking);
});
afterEach(() => rig.close());

const as = (project: string) => ({ "x-auth-token": project, "openstack-api-version": "compute 2.90" });
const create = (project: string, networks: unknown) =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", networks } }, as(project));
async function active(project: string): Promise<string> {
  const answer = await create(project, "none");
  expect([answer.statusCode, answer.body]).toEqual([202, expect.anything()]);
  const { id } = answer.json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
}

test("ports are made in the caller's name: Neutron's policy decides who may choose an address", async () => {
  const refused = await create("two", [{ uuid: SHARED_NETWORK, fixed_ip: "10.2.0.12" }]);
  expect([refused.statusCode, refused.body]).toEqual([403, expect.stringContaining("disallowed by policy")]);
  expect(rig.networking.all()).toEqual([]);
  expect(await rig.portNotes.dueNotes(-1_000, null, 10)).toEqual([]);
  const ofOwner = await create("one", [{ uuid: OWN_NETWORK, fixed_ip: "10.1.0.12" }]);
  expect([ofOwner.statusCode, ofOwner.body]).toEqual([202, expect.anything()]);
  expect((await create("two", [{ uuid: SHARED_NETWORK }])).statusCode).toBe(202);
});

test("an address in use is refused without the server that has it, unless the caller may see its port", async () => {
  const port = { networkId: SHARED_NETWORK, deviceId: randomUUID() };
  rig.networking.putPort({ ...port, projectId: "two", fixedAddresses: [{ address: "10.2.0.12", subnetId: "s" }] });
  const refusal = async (project: string) => {
    const refused = await create(project, [{ uuid: SHARED_NETWORK, fixed_ip: "10.2.0.12" }]);
    return [refused.statusCode, refused.json().badRequest?.message];
  };
  expect(await refusal("one")).toEqual([400, "Fixed IP address 10.2.0.12 is already in use."]);
  const onServer = `Fixed IP address 10.2.0.12 is already in use on instance ${port.deviceId}.`;
  expect(await refusal("two")).toEqual([400, onServer]);
});

test("an attached port is made in the caller's name, and bound to the host in this service's", async () => {
  await answerInterfaces(rig.cell("north").bus, "north");
  const id = await active("two");
  const attach = (interfaceAttachment: object) =>
    rig.post(`/v2.1/servers/${id}/os-interface`, { interfaceAttachment }, as("two"));
  const refused = await attach({ net_id: SHARED_NETWORK, fixed_ips: [{ ip_address: "10.2.0.12" }] });
  expect([refused.statusCode, refused.body]).toEqual([403, expect.stringContaining("disallowed by policy")]);
  const attached = await attach({ net_id: SHARED_NETWORK });
  expect([attached.statusCode, attached.body]).toEqual([200, expect.anything()]);
  expect(rig.networking.all()).toMatchObject([{ projectId: "two", deviceId: id, host: hostName(0), vifType: "ovs" }]);
});

test("a port that is made and that no driver can connect is deleted again", async () => {
  const id = await active("two");
  rig.networking.hostsWithoutDriver.add(hostName(0));
  const body = { interfaceAttachment: { net_id: SHARED_NETWORK } };
  const refused = await rig.post(`/v2.1/servers/${id}/os-interface`, body, as("two"));
  expect([refused.statusCode, refused.body]).toEqual([400, expect.stringContaining("Binding failed for port")]);
  expect(rig.networking.all()).toEqual([]);
});
