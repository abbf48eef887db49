import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MemoryApiStore } from "../../../adapters/memory/api/memory-api-store.ts";
import { MemoryServerGroupStore } from "../../../adapters/memory/api/memory-server-group-store.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { joinGroup } from "../../../services/api/compute/server-groups/join-group.ts";
import type { KnownCall } from "../../../services/api/http/call.ts";
import { serverSpec } from "../../contract/cell-fixtures.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

/** Limits that allow this number of members in a group. */
const upTo = (server_group_members: number) => ({
  ofUser: async () => ({ ...QUOTA_DEFAULTS.unlimited, server_group_members }),
});

const PATH = "/v2.1/os-server-groups";
const as = (token: string, minor = 64) => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
});

describe("/os-server-groups", () => {
  let rig: ApiRig;
  beforeEach(async () => {
    rig = await ApiRig.start({ auth: "noauth2", quotas: { ...QUOTA_DEFAULTS.unlimited, server_groups: 3 } });
  });
  afterEach(() => rig.close());
  const create = (server_group: unknown, headers: Record<string, string> = as("ann:p1")) =>
    rig.post(PATH, { server_group }, headers);
  const names = async (headers: Record<string, string>, query = "") =>
    (await rig.get(PATH + query, headers)).json().server_groups.map((group: { name: string }) => group.name);

  it("creates, shows and deletes a group with a rule, in the format of microversion 2.64", async () => {
    const asked = { name: "pairs", policy: "anti-affinity", rules: { max_server_per_host: "2" } };
    const created = await create(asked);
    expect(created.statusCode).toBe(200);
    const group = created.json().server_group;
    expect(group).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "pairs",
      policy: "anti-affinity",
      rules: { max_server_per_host: 2 },
      members: [],
      project_id: "p1",
      user_id: "ann",
    });
    expect((await rig.get(`${PATH}/${group.id}`, as("ann:p1"))).json()).toEqual({ server_group: group });
    expect((await rig.delete(`${PATH}/${group.id}`, as("ann:p1"))).statusCode).toBe(204);
    expect((await rig.delete(`${PATH}/${group.id}`, as("ann:p1"))).json()).toMatchObject({
      itemNotFound: { message: `Instance group ${group.id} could not be found.` },
    });
    expect((await rig.get(`${PATH}/nothing`, as("ann:p1"))).statusCode).toBe(404);
  });

  it("shows a list of policies and no owner in the first microversions", async () => {
    const created = await create({ name: "old", policies: ["affinity"] }, as("ann:p1", 1));
    const { id } = created.json().server_group;
    expect(created.json().server_group).toEqual({ id, name: "old", policies: ["affinity"], metadata: {}, members: [] });
    expect((await rig.get(`${PATH}/${id}`, as("ann:p1", 13))).json().server_group).toMatchObject({ project_id: "p1" });
    expect((await rig.get(`${PATH}/${id}`, as("ann:p1"))).json().server_group).toMatchObject({
      policy: "affinity",
      rules: {},
    });
  });

  it("refuses fields that the call's microversion does not know, by name", async () => {
    const refusals: [unknown, number, string][] = [
      [{ name: "g", policy: "affinity" }, 63, "policy"],
      [{ name: "g", policies: ["affinity"] }, 64, "policies"],
      [{ name: "g", policies: ["soft-affinity"] }, 14, "policies"],
      [{ name: "g", policy: "sticky" }, 64, "policy"],
      [{ name: "g" }, 64, "policy"],
      [{ name: "g", policies: ["affinity", "anti-affinity"] }, 1, "policies"],
      [{ policy: "affinity" }, 64, "name"],
      [{ name: "g", policy: "anti-affinity", rules: { max_server_per_host: 0 } }, 64, "max_server_per_host"],
      [{ name: "g", policy: "anti-affinity", rules: { colour: 1 } }, 64, "colour"],
      [
        { name: "g", policy: "affinity", rules: { max_server_per_host: 2 } },
        64,
        "Only anti-affinity policy supports rules.",
      ],
    ];
    for (const [body, minor, named] of refusals) {
      const answer = await create(body, as("ann:p1", minor));
      expect([answer.statusCode, answer.json().badRequest?.message]).toEqual([400, expect.stringContaining(named)]);
    }
  });

  it("lists a project's groups page by page, and all of them for an admin who asks", async () => {
    for (const name of ["a", "b"]) await create({ name, policy: "affinity" });
    await create({ name: "c", policy: "affinity" }, as("bob:p2"));
    expect(await names(as("ann:p1"))).toEqual(["a", "b"]);
    expect(await names(as("ann:p1"), "?limit=1&offset=1")).toEqual(["b"]);
    expect(await names(as("ann:p1"), "?all_projects")).toEqual(["a", "b"]);
    expect(await names(as("admin:p9"), "?all_projects=True")).toEqual(["a", "b", "c"]);
    expect((await rig.get(`${PATH}?limit=-1`, as("ann:p1"))).statusCode).toBe(400);
    expect((await rig.get(`${PATH}?colour=red`, as("ann:p1", 75))).statusCode).toBe(400);
  });

  it("hides groups from other projects, and enforces a project's limit", async () => {
    const { id } = (await create({ name: "a", policy: "affinity" })).json().server_group;
    expect((await rig.get(`${PATH}/${id}`, as("bob:p2"))).statusCode).toBe(404);
    expect((await rig.delete(`${PATH}/${id}`, as("bob:p2"))).statusCode).toBe(404);
    expect((await rig.get(`${PATH}/${id}`, as("admin:p9"))).statusCode).toBe(200);
    for (const name of ["b", "c"]) await create({ name, policy: "affinity" });
    expect((await create({ name: "d", policy: "affinity" })).json()).toMatchObject({ forbidden: { code: 403 } });
  });
});

describe("POST /servers with several servers", () => {
  it("accepts them as one call with one message, and their UUIDs are known before any of them is accepted", async () => {
    const rig = await ApiRig.start();
    const body = { server: { name: "web", flavorRef: "1", min_count: 2, max_count: 3 } };
    expect((await rig.post("/v2.1/servers", body)).statusCode).toBe(202);
    const listed = (await rig.get("/v2.1/servers")).json().servers;
    const uuids = listed.map((server: { id: string }) => server.id);
    const specs = (await rig.store.requests(uuids)).map((record) => record.spec);
    expect(new Set(specs.map((spec) => spec.reservationId)).size).toBe(1);
    const reservation = await rig.reservations.reservation(specs[0]?.reservationId ?? "");
    expect(reservation).toMatchObject({ minCount: 2, decision: null });
    expect([...(reservation?.serverUuids ?? [])].sort()).toEqual(uuids.toSorted());
    await eventually("the schedulers to be told", () => rig.toldSchedulers.length > 0);
    expect(rig.toldSchedulers).toEqual([reservation?.serverUuids[0]]);
    await rig.close();
  });

  it("accepts a single server in the ordinary way", async () => {
    const rig = await ApiRig.start();
    const [record] = await rig.store.requests([await rig.boot()]);
    expect(record?.spec.reservationId).toBe("");
    await rig.close();
  });
});

describe("joinGroup", () => {
  const call = (projectId: string, isAdmin = false): KnownCall => ({
    requestId: "req-1",
    minor: 64,
    token: null,
    identity: { projectId, userId: "ann", isAdmin, roles: [] },
    policy: null,
    rules: [],
  });
  const uuid = "0000000e-0000-4000-8000-000000000001";
  const hints = [{ name: "group", values: [uuid] }];
  const storeWithGroup = async () => {
    const requests = new MemoryApiStore({ clock: systemClock });
    const groups = new MemoryServerGroupStore({ requests });
    const group = {
      uuid,
      name: "g",
      projectId: "p1",
      userId: "ann",
      policy: "anti-affinity",
      maxServerPerHost: 2,
    } as const;
    await groups.createGroup(group, 10);
    return { requests, groups };
  };

  it("makes the servers of a call members, and writes the group into their specs", async () => {
    const { requests, groups } = await storeWithGroup();
    const specs = await joinGroup(groups, call("p1"), [serverSpec(1, { hints }), serverSpec(2, { hints })], upTo(10));
    for (const spec of specs) expect(spec.group).toEqual({ uuid, policy: "anti-affinity", maxServerPerHost: 2 });
    await requests.accept(specs);
    expect((await groups.group(uuid))?.members).toEqual(specs.map((spec) => spec.uuid));
  });

  it("accepts a UUID in any spelling", async () => {
    const { groups } = await storeWithGroup();
    const spelt = [{ name: "group", values: [uuid.replaceAll("-", "").toUpperCase()] }];
    const [spec] = await joinGroup(groups, call("p1"), [serverSpec(1, { hints: spelt })], upTo(10));
    expect(spec?.group?.uuid).toBe(uuid);
  });

  it("ignores servers without the hint", async () => {
    const { groups } = await storeWithGroup();
    const specs = [serverSpec(1)];
    expect(await joinGroup(groups, call("p1"), specs, upTo(10))).toBe(specs);
  });

  it("refuses an unknown group, another project's, and too many members", async () => {
    const { groups } = await storeWithGroup();
    const unknown = [serverSpec(1, { hints: [{ name: "group", values: ["0000000e-0000-4000-8000-000000000009"] }] })];
    await expect(joinGroup(groups, call("p1"), unknown, upTo(10))).rejects.toMatchObject({ status: 400 });
    const asked = [serverSpec(1, { hints }), serverSpec(2, { hints })];
    await expect(joinGroup(groups, call("p2"), asked, upTo(10))).rejects.toMatchObject({ status: 400 });
    await expect(joinGroup(groups, call("p1"), asked, upTo(1))).rejects.toMatchObject({ status: 403 });
    await expect(joinGroup(groups, call("p2", true), asked, upTo(2))).resolves.toHaveLength(2);
  });
});
