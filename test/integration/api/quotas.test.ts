import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor = 96) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const ANN = as("ann:p1");
const ADMIN = as("admin:ops");
const SET = "/v2.1/os-quota-sets/p1";
const CLASS = "/v2.1/os-quota-class-sets/default";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", quotas: QUOTA_DEFAULTS.nova, flavorCacheMs: 0 });
});
afterEach(() => rig.close());
const boot = (over: object = {}, headers = ANN) =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", networks: "none", ...over } }, headers);
const setQuota = (quota_set: object, query = "", headers = ADMIN) => rig.put(SET + query, { quota_set }, headers);
const used = async (query = "") => {
  const { quota_set } = (await rig.get(`${SET}/detail${query}`, ADMIN)).json();
  return [quota_set.instances.in_use, quota_set.cores.in_use, quota_set.ram.in_use];
};

const OF_257 = { cores: 20, instances: 10, key_pairs: 100, metadata_items: 128, ram: 51_200 };
const GROUPS = { server_groups: 10, server_group_members: 10 };
const FILES = { injected_files: 5, injected_file_content_bytes: 10_240, injected_file_path_bytes: 255 };
const NETWORK = { fixed_ips: -1, floating_ips: -1, security_groups: -1, security_group_rules: -1 };

describe("/os-quota-sets", () => {
  it("shows what each microversion has", async () => {
    const show = async (path: string, minor: number) => (await rig.get(path, as("ann:p1", minor))).json().quota_set;
    expect(await show(SET, 57)).toEqual({ id: "p1", ...OF_257, ...GROUPS });
    expect(await show(SET, 36)).toEqual({ id: "p1", ...OF_257, ...GROUPS, ...FILES });
    expect(await show(SET, 1)).toEqual({ id: "p1", ...OF_257, ...GROUPS, ...FILES, ...NETWORK });
    expect(await show(`${SET}/defaults`, 96)).toEqual({ id: "p1", ...OF_257, ...GROUPS });
    expect((await show(`${SET}/detail`, 96)).cores).toEqual({ limit: 20, in_use: 0, reserved: 0 });
    expect(Object.keys(await show(`${SET}/detail`, 1))).toContain("floating_ips");
  });

  it("changes and deletes the limits of a project and of a user", async () => {
    const updated = await setQuota({ cores: "4", ram: -1 });
    expect(updated.json().quota_set).toEqual({ ...OF_257, ...GROUPS, cores: 4, ram: -1 });
    expect((await setQuota({ instances: 2, cores: 3 }, "?user_id=ann")).json().quota_set.instances).toBe(2);
    const ofAnn = (await rig.get(`${SET}?user_id=ann`, ANN)).json().quota_set;
    expect([ofAnn.instances, ofAnn.cores, ofAnn.ram]).toEqual([2, 3, -1]);
    expect((await rig.get(SET, ANN)).json().quota_set).toMatchObject({ instances: 10, cores: 4 });
    expect((await rig.delete(`${SET}?user_id=ann`, ADMIN)).statusCode).toBe(202);
    expect((await rig.get(`${SET}?user_id=ann`, ANN)).json().quota_set.instances).toBe(10);
    expect((await rig.delete(SET, ADMIN)).statusCode).toBe(202);
    expect((await rig.get(SET, ANN)).json().quota_set).toMatchObject(OF_257);
  });

  it("refuses limits below what is in use and beyond what the project has left for a user, unless forced", async () => {
    await boot();
    await boot();
    const refused = async (quota_set: object, query = "") =>
      (await setQuota(quota_set, query)).json().badRequest.message;
    expect(await refused({ instances: 1 })).toBe(
      "Quota limit 1 for instances must be greater than or equal to already used and reserved 2.",
    );
    expect((await setQuota({ cores: 5 }, "?user_id=ann")).statusCode).toBe(200);
    expect(await refused({ cores: 4 })).toContain("already used and reserved 5.");
    expect(await refused({ cores: 16 }, "?user_id=bob")).toBe(
      "Quota limit 16 for cores must be less than or equal to 15.",
    );
    expect(await refused({ cores: -1 }, "?user_id=bob")).toContain("less than or equal to 15.");
    expect((await setQuota({ instances: 1, force: true })).statusCode).toBe(200);
    expect((await boot()).statusCode).toBe(403);
  });

  it("refuses fields that a microversion does not have, and numbers that are not valid limits", async () => {
    const status = async (quota_set: object, minor = 96) =>
      (await setQuota(quota_set, "", as("admin:ops", minor))).statusCode;
    expect(await status({ floating_ips: 1 }, 36)).toBe(400);
    expect(await status({ floating_ips: 1 }, 35)).toBe(200);
    expect(await status({ injected_files: 1 }, 57)).toBe(400);
    expect(await status({ injected_files: 1 }, 56)).toBe(200);
    for (const cores of [-2, 1.5, "a", "-5", "99999999999", 2 ** 31, null]) expect(await status({ cores })).toBe(400);
    expect(await status({ gold: 1 })).toBe(400);
    expect((await rig.get(`${SET}?colour=red`, as("ann:p1", 75))).statusCode).toBe(400);
  });

  it("shows a project its own quotas, and lets admins alone see others and change any", async () => {
    const statuses = async (headers: Record<string, string>) => [
      (await rig.get(SET, headers)).statusCode,
      (await rig.get(`${SET}/detail`, headers)).statusCode,
      (await rig.get(`${SET}/defaults`, headers)).statusCode,
      (await setQuota({ cores: 20 }, "", headers as typeof ANN)).statusCode,
      (await rig.delete(SET, headers)).statusCode,
      (await rig.get(CLASS, headers)).statusCode,
      (await rig.put(CLASS, { quota_class_set: { cores: 20 } }, headers)).statusCode,
      (await rig.get("/v2.1/limits", headers)).statusCode,
      (await rig.get("/v2.1/limits?tenant_id=p1", headers)).statusCode,
    ];
    expect(await statuses(ANN)).toEqual([200, 200, 200, 403, 403, 403, 403, 200, 403]);
    expect(await statuses(as("bob:p2"))).toEqual([403, 403, 200, 403, 403, 403, 403, 200, 403]);
    expect(await statuses(ADMIN)).toEqual([200, 200, 200, 200, 202, 200, 200, 200, 200]);
    const refused = await rig.get(SET, as("bob:p2"));
    expect(refused.json().forbidden.message).toBe(
      "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.",
    );
  });
});

describe("/os-quota-class-sets", () => {
  it("replaces the defaults of every project by the class `default`", async () => {
    const put = await rig.put(CLASS, { quota_class_set: { instances: 1, server_groups: 3 } }, ADMIN);
    expect(put.json().quota_class_set).toEqual({ ...OF_257, ...GROUPS, instances: 1, server_groups: 3 });
    expect((await rig.get(`${SET}/defaults`, ANN)).json().quota_set.instances).toBe(1);
    expect((await boot()).statusCode).toBe(202);
    expect((await boot()).statusCode).toBe(403);
    expect((await boot({}, as("bob:p2"))).statusCode).toBe(202);
  });

  it("shows what each microversion has", async () => {
    const show = async (minor: number) =>
      (await rig.get("/v2.1/os-quota-class-sets/gold", as("admin:ops", minor))).json().quota_class_set;
    expect(await show(1)).toEqual({ id: "gold", ...OF_257, ...FILES, ...NETWORK });
    expect(await show(50)).toEqual({ id: "gold", ...OF_257, ...FILES, ...GROUPS });
    expect(await show(57)).toEqual({ id: "gold", ...OF_257, ...GROUPS });
  });
});

describe("/limits", () => {
  it("shows limits and usage of the caller's project, as each microversion names them", async () => {
    await boot();
    const show = async (minor: number, query = "", token = "ann:p1") =>
      (await rig.get(`/v2.1/limits${query}`, as(token, minor))).json().limits;
    const of257 = {
      ...{ maxTotalInstances: 10, maxTotalCores: 20, maxTotalRAMSize: 51_200, maxTotalKeypairs: 100 },
      ...{ maxServerMeta: 128, maxServerGroups: 10, maxServerGroupMembers: 10 },
      ...{ totalInstancesUsed: 1, totalCoresUsed: 1, totalRAMUsed: 512, totalServerGroupsUsed: 0 },
    };
    expect(await show(57)).toEqual({ rate: [], absolute: of257 });
    expect(Object.keys((await show(39)).absolute)).not.toContain("maxImageMeta");
    expect((await show(36)).absolute).toEqual({
      ...{ ...of257, maxImageMeta: 128, maxPersonality: 5, maxPersonalitySize: 10_240 },
    });
    expect((await show(1)).absolute).toMatchObject({ maxTotalFloatingIps: -1, totalSecurityGroupsUsed: 0 });
    expect((await show(57, "?tenant_id=p1", "admin:ops")).absolute.totalInstancesUsed).toBe(1);
    expect((await show(57, "", "bob:p2")).absolute.totalInstancesUsed).toBe(0);
  });
});

describe("the quotas of servers", () => {
  it("refuses a server beyond them in Nova's words, and has room again at once when one is deleted", async () => {
    await setQuota({ instances: 2, cores: 2, ram: 1_024 });
    const { id } = (await boot()).json().server;
    await boot();
    const refused = await boot();
    expect(refused.json()).toEqual({
      forbidden: {
        code: 403,
        message:
          "Quota exceeded for cores, instances, ram: Requested 1, 1, 512, but already used 2, 2, 1024 of 2, 2, 1024 cores, instances, ram",
      },
    });
    expect((await boot({}, as("bob:p2"))).statusCode).toBe(202);
    expect((await rig.delete(`/v2.1/servers/${id}`, ANN)).statusCode).toBe(204);
    expect(await used()).toEqual([1, 1, 512]);
    expect((await boot()).statusCode).toBe(202);
  });

  it("a cell that does not answer changes nothing", async () => {
    await setQuota({ instances: 1 });
    const { id } = (await boot()).json().server;
    await rig.dispatch(id, "north", [0]);
    rig.cell("north").dead = true;
    expect((await boot()).statusCode).toBe(403);
    expect(await used()).toEqual([1, 1, 512]);
    await rig.delete(`/v2.1/servers/${id}`, ANN);
    expect((await boot()).statusCode).toBe(202);
  });

  it("creates as many servers of a call as the quota allows, if these are enough", async () => {
    await setQuota({ instances: 3 });
    const some = await boot({ min_count: 2, max_count: 5, return_reservation_id: true });
    expect(some.statusCode, some.body).toBe(202);
    expect(await used()).toEqual([3, 3, 1_536]);
    const listed = await rig.get(`/v2.1/servers?reservation_id=${some.json().reservation_id}`, ANN);
    expect(listed.json().servers).toHaveLength(3);
    const [first] = await rig.store.requests([listed.json().servers[0].id]);
    expect((await rig.reservations.reservation(first?.spec.reservationId ?? ""))?.serverUuids).toHaveLength(3);
    const none = await boot({ min_count: 2, max_count: 5 });
    expect(none.json().forbidden.message).toBe(
      "Quota exceeded for instances: Requested 2-5, but already used 3 of 3 instances",
    );
  });

  it("a race of creates ends with as many servers as the quota allows", async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => boot()));
    expect(answers.filter(({ statusCode }) => statusCode === 202)).toHaveLength(10);
    expect(await used()).toEqual([10, 10, 5_120]);
  });

  it("a resize takes the difference when it is accepted, and is refused beyond the quota", async () => {
    for (const [id, vcpus] of [
      ["2", 4],
      ["3", 30],
    ] as const)
      await rig.post("/v2.1/flavors", { flavor: { name: `f${id}`, id, vcpus, ram: 1_024, disk: 1 } }, ADMIN);
    const { id } = (await boot()).json().server;
    const task = await rig.dispatch(id, "north", [0]);
    await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
    const resize = (flavorRef: string) => rig.post(`/v2.1/servers/${id}/action`, { resize: { flavorRef } }, ANN);
    expect((await resize("3")).json().forbidden.message).toBe(
      "Quota exceeded for cores: Requested 29, but already used 1 of 20 cores",
    );
    expect(await used()).toEqual([1, 1, 512]);
    expect((await resize("2")).statusCode).toBe(202);
    expect(await used()).toEqual([1, 4, 1_024]);
    expect(await used("?user_id=ann")).toEqual([1, 4, 1_024]);
    expect(await used("?user_id=bob")).toEqual([0, 0, 0]);
  });

  it("limits the metadata of a server", async () => {
    await setQuota({ metadata_items: 1 });
    expect((await boot({ metadata: { a: "1" } })).statusCode).toBe(202);
    expect((await boot({ metadata: { a: "1", b: "2" } })).json().forbidden.message).toBe(
      "Maximum number of metadata items exceeds 1",
    );
  });

  it("limits the metadata of images up to 2.38, and no longer from 2.39 on", async () => {
    const id = await rig.bootActive("north", 0, { networks: "none" }, ANN);
    await setQuota({ metadata_items: 1 });
    const save = (minor: number) =>
      rig.post(
        `/v2.1/servers/${id}/action`,
        { createImage: { name: "x", metadata: { a: "1", b: "2" } } },
        { ...ANN, "openstack-api-version": `compute 2.${minor}` },
      );
    const refused = await save(38);
    expect([refused.statusCode, refused.json().forbidden?.message]).toEqual([
      ...[403, "Maximum number of metadata items exceeds 1"],
    ]);
    expect((await save(39)).statusCode).toBe(202);
  });

  it("limits the metadata that is written later, by the quota of the day, and never its removal", async () => {
    const id = (await boot({ metadata: { a: "1", b: "2" } })).json().server.id;
    const task = await rig.dispatch(id, "north", [0]);
    await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
    await setQuota({ metadata_items: 1 });
    const path = `/v2.1/servers/${id}/metadata`;
    const two = { metadata: { c: "3", d: "4" } };
    const rebuild = { rebuild: { imageRef: "70a599e0-31e7-49b7-b260-868f441e862b", ...two } };
    const refusals = [
      ...[
        await rig.post(path, two, ANN),
        await rig.put(path, two, ANN),
        await rig.put(`${path}/c`, { meta: { c: "3" } }, ANN),
      ],
      await rig.post(`/v2.1/servers/${id}/action`, rebuild, ANN),
    ];
    for (const refused of refusals)
      expect([refused.statusCode, refused.json().forbidden?.message]).toEqual([
        ...[403, "Maximum number of metadata items exceeds 1"],
      ]);
    expect((await rig.delete(`${path}/a`, ANN)).statusCode).toBe(204);
    expect((await rig.get(path, ANN)).json()).toEqual({ metadata: { b: "2" } });
    await setQuota({ metadata_items: 200 });
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`k${at}`, "x"]));
    expect((await rig.put(path, { metadata: many }, ANN)).statusCode).toBe(200);
  });

  it("limits the groups of a project and their members", async () => {
    await setQuota({ server_groups: 1, server_group_members: 1 });
    const group = () => rig.post("/v2.1/os-server-groups", { server_group: { name: "g", policy: "affinity" } }, ANN);
    const { id } = (await group()).json().server_group;
    expect((await group()).json().forbidden.message).toBe("Quota exceeded, too many server groups.");
    const member = () =>
      rig.post(
        "/v2.1/servers",
        { server: { name: "m", flavorRef: "1", networks: "none" }, "os:scheduler_hints": { group: id } },
        ANN,
      );
    expect((await member()).statusCode).toBe(202);
    expect((await member()).json().forbidden.message).toBe("Quota exceeded, too many servers in group");
    expect((await rig.get("/v2.1/limits", ANN)).json().limits.absolute.totalServerGroupsUsed).toBe(1);
  });
});
