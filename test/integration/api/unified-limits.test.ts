import { afterEach, beforeEach, expect, test } from "vitest";
import { MemoryLimitSource } from "../../../adapters/memory/memory-limit-source.ts";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor = 96) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const ANN = as("ann:p1");
const ADMIN = as("admin:ops");
const SET = "/v2.1/os-quota-sets/p1";

let rig: ApiRig;
let source: MemoryLimitSource;
beforeEach(async () => {
  source = new MemoryLimitSource();
  for (const [name, limit] of Object.entries({
    ...{ servers: 10, "class:VCPU": 20, "class:MEMORY_MB": 51_200, server_key_pairs: 1, server_metadata_items: 2 },
    ...{ server_groups: 1, server_group_members: 10 },
  }))
    source.set(null, name, limit);
  rig = await ApiRig.start({ auth: "noauth2", limitsCacheMs: 0 }, ...([null, null, null, null, null] as const), source);
});
afterEach(() => rig.close());
const boot = (over: object = {}) =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", networks: "none", ...over } }, ANN);

test("a project boots as many servers as its limit in Keystone allows, whatever quota sets were stored before", async () => {
  await rig.quotas.setLimits({ projectId: "p1", userId: null }, { instances: 0 });
  source.set("p1", "servers", 3);
  const answers = await Promise.all(Array.from({ length: 8 }, () => boot()));
  expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([202, 202, 202, 403, 403, 403, 403, 403]);
  expect((await boot()).json().forbidden.message).toBe(
    "Project p1 is over a limit for [Resource servers is over limit of 3 due to current usage 3 and delta 1]",
  );
  source.set("p1", "servers", 20);
  source.set("p1", "class:VCPU", 3);
  source.set("p1", "class:MEMORY_MB", 1_600);
  expect((await boot()).json().forbidden.message).toBe(
    "Project p1 is over a limit for [Resource class:MEMORY_MB is over limit of 1600 due to current usage 1536 and delta 512, Resource class:VCPU is over limit of 3 due to current usage 3 and delta 1]",
  );
  source.set("p1", "class:VCPU", 5);
  source.set("p1", "class:MEMORY_MB", -1);
  expect((await boot({ min_count: 1, max_count: 5 })).statusCode).toBe(202);
  expect((await rig.quotas.usage("p1")).ofProject.instances).toBe(5);
});

test("a limit of another resource class is told by its name, and dedicated CPUs have one of their own", async () => {
  source.set(null, "class:DISK_GB", 2);
  const answers = await Promise.all(Array.from({ length: 8 }, () => boot()));
  expect(answers.filter(({ statusCode }) => statusCode === 202)).toHaveLength(2);
  expect((await boot()).json().forbidden.message).toBe(
    "Project p1 is over a limit for [Resource class:DISK_GB is over limit of 2 due to current usage 2 and delta 1]",
  );
  source.set(null, "class:DISK_GB", -1);
  source.set(null, "class:PCPU", 1);
  source.set(null, "class:VCPU", 3);
  const flavor = { id: "dedicated", name: "dedicated", vcpus: 1, ram: 64, disk: 1 };
  expect((await rig.post("/v2.1/flavors", { flavor }, ADMIN)).statusCode).toBe(200);
  const specs = { extra_specs: { "hw:cpu_policy": "dedicated" } };
  expect((await rig.post("/v2.1/flavors/dedicated/os-extra_specs", specs, ADMIN)).statusCode).toBe(200);
  expect((await boot({ flavorRef: "dedicated" })).statusCode).toBe(202);
  expect((await boot({ flavorRef: "dedicated" })).json().forbidden.message).toBe(
    "Project p1 is over a limit for [Resource class:PCPU is over limit of 1 due to current usage 1 and delta 1]",
  );
  expect((await boot()).statusCode).toBe(202);
  expect((await boot()).json().forbidden.message).toContain("class:VCPU is over limit of 3");
});

test("nothing is accepted while Keystone does not answer, and the answer says so", async () => {
  source.broken = new Error("Keystone does not answer");
  const refused = await boot();
  expect([refused.statusCode, refused.json().serviceUnavailable.message]).toEqual([
    ...[503, expect.stringContaining("Keystone has the limits of projects")],
  ]);
  expect((await rig.quotas.usage("p1")).ofProject.instances).toBe(0);
  for (const path of [SET, "/v2.1/limits"]) expect((await rig.get(path, ANN)).statusCode).toBe(503);
  const key = await rig.post("/v2.1/os-keypairs", { keypair: { name: "k", public_key: "ssh-rsa AAAA" } }, ANN);
  expect(key.statusCode).toBe(503);
  source.broken = null;
  expect((await boot()).statusCode).toBe(202);
});

test("quota sets, classes and limits show Keystone's limits with the use, and changes of them have no effect, as in Nova", async () => {
  source.set("p1", "servers", 5);
  await boot();
  const detail = (await rig.get(`${SET}/detail`, ANN)).json().quota_set;
  expect([detail.instances, detail.cores, detail.server_groups, detail.key_pairs]).toEqual([
    { limit: 5, in_use: 1, reserved: 0 },
    { limit: 20, in_use: 1, reserved: 0 },
    { limit: 1, in_use: 0, reserved: 0 },
    { limit: 1, in_use: 0, reserved: 0 },
  ]);
  expect((await rig.get(`${SET}?user_id=ann`, ANN)).json().quota_set.instances).toBe(5);
  expect((await rig.get(`${SET}/defaults`, ANN)).json().quota_set).toMatchObject({ instances: 10, metadata_items: 2 });
  const changed = await rig.put(SET, { quota_set: { instances: 0, cores: 50 } }, ADMIN);
  expect([changed.statusCode, changed.json().quota_set.instances, changed.json().quota_set.cores]).toEqual([
    200, 5, 20,
  ]);
  expect((await rig.delete(SET, ADMIN)).statusCode).toBe(202);
  const className = "/v2.1/os-quota-class-sets/default";
  await rig.put(className, { quota_class_set: { instances: 50 } }, ADMIN);
  expect((await rig.get(className, ADMIN)).json().quota_class_set).toMatchObject({ instances: 10, server_groups: 1 });
  const { absolute } = (await rig.get("/v2.1/limits", ANN)).json().limits;
  expect(absolute).toMatchObject({ maxTotalInstances: 5, totalInstancesUsed: 1, maxTotalCores: 20, maxServerMeta: 2 });
});

test("key pairs, server groups and metadata have Keystone's registered limits", async () => {
  const group = (name: string) =>
    rig.post("/v2.1/os-server-groups", { server_group: { name, policy: "affinity" } }, ANN);
  expect([(await group("a")).statusCode, (await group("b")).statusCode]).toEqual([200, 403]);
  expect((await boot({ metadata: { a: "1", b: "2", c: "3" } })).statusCode).toBe(403);
  expect((await boot({ metadata: { a: "1", b: "2" } })).statusCode).toBe(202);
});
