import { randomUUID } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { computeDefaults } from "../../../services/api/policy/compute-rules.ts";
import { Policy } from "../../../services/api/policy/policy.ts";
import { ApiRig } from "./api-rig.ts";

/** Rules of the policy about networks of Neutron and about servers that boot from volumes. */

let rig: ApiRig;
afterEach(() => rig.close());

const as = (token: string) => ({ "x-auth-token": token, "openstack-api-version": "compute 2.90" });

test("an external network is for admins alone, unless it is shared or the policy says otherwise", async () => {
  const policy = new Policy(computeDefaults());
  rig = await ApiRig.start({ auth: "noauth2", networks: "neutron" }, null, null, null, policy);
  const network = { name: "public", projectId: "one", isExternal: true, size: 8 };
  const [external, shared] = [randomUUID(), randomUUID()];
  for (const [id, isShared] of [
    [external, false],
    [shared, true],
  ] as const)
    rig.networking.putNetwork({ ...network, id, isShared, subnetIds: [randomUUID()], first: "203.0.113.10" });
  const boot = async (token: string, uuid: string) => {
    const server = { name: "web", flavorRef: "1", networks: [{ uuid }] };
    const answer = await rig.post("/v2.1/servers", { server }, as(token));
    return [answer.statusCode, answer.json().forbidden?.message];
  };
  const refused = [403, `It is not allowed to create an interface on external network ${external}`];
  expect(await boot("ann:one", external)).toEqual(refused);
  expect(rig.networking.all()).toEqual([]);
  expect(await boot("ann:one", shared)).toEqual([202, undefined]);
  expect(await boot("admin:one", external)).toEqual([202, undefined]);
  policy.replaceOverrides({ "network:attach_external_network": "rule:project_member_api" });
  expect(await boot("ann:one", external)).toEqual([202, undefined]);
});

test("a member may ask for an image of a server that boots from a volume, unless the policy says otherwise", async () => {
  const policy = new Policy(computeDefaults());
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" }, null, null, null, policy);
  const made = await rig.post("/volume/v3/volumes", { volume: { size: 2 } }, as("ann:one"));
  const { id } = made.json().volume;
  const bootable = { "os-set_bootable": { bootable: true } };
  await rig.post(`/volume/v3/volumes/${id}/action`, bootable, as("ann:one"));
  const root = { source_type: "volume", destination_type: "volume", uuid: id, boot_index: 0 };
  const fields = { imageRef: "", networks: "none", block_device_mapping_v2: [root] };
  const backed = await rig.bootActive("north", 0, fields, as("ann:one"));
  const plain = await rig.bootActive("north", 1, { networks: "none" }, as("ann:one"));
  const imageOf = async (server: string) => {
    const answer = await rig.post(`/v2.1/servers/${server}/action`, { createImage: { name: "i" } }, as("ann:one"));
    return [answer.statusCode, answer.json().forbidden?.message];
  };
  const rule = "os_compute_api:servers:create_image:allow_volume_backed";
  policy.replaceOverrides({ [rule]: "!" });
  expect(await imageOf(backed)).toEqual([403, `Policy doesn't allow ${rule} to be performed.`]);
  expect((await imageOf(plain))[0]).toBe(202);
  policy.replaceOverrides({});
  // Berth's own volumes have no snapshots.
  expect((await imageOf(backed))[0]).toBe(400);
});
