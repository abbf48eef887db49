import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deleteTaskOf } from "../../../core/tasks/server-spec.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { ALL_PATHS } from "../../rigs/api-paths.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

interface Shown {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}
const LATEST = { "openstack-api-version": "compute latest" };
const show = async (uuid: string, headers = {}) => (await rig.get(`/v2.1/servers/${uuid}`, headers)).json().server;
const list = async (query = "", headers = {}): Promise<Shown[]> =>
  (await rig.get(`/v2.1/servers/detail${query}`, headers)).json().servers;
const ids = (servers: readonly Shown[]) => servers.map((server) => server.id);

describe("GET /servers/{id}", () => {
  it("shows a server that waits for a host", async () => {
    const uuid = await rig.boot({ metadata: { a: "b" } });
    expect(await show(uuid)).toMatchObject({
      id: uuid,
      name: "web",
      status: "BUILD",
      tenant_id: "default",
      user_id: "admin",
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      hostId: "",
      image: "",
      flavor: { id: "1", links: [{ rel: "bookmark", href: "http://localhost:80/flavors/1" }] },
      addresses: {},
      metadata: { a: "b" },
      progress: 0,
      "OS-EXT-STS:vm_state": "building",
      "OS-EXT-STS:task_state": "scheduling",
      "OS-EXT-STS:power_state": 0,
      "OS-EXT-SRV-ATTR:host": null,
      "OS-SRV-USG:launched_at": null,
    });
  });

  it("shows a server that a scheduler has taken back from its cell until its request has failed", async () => {
    const uuid = await rig.boot({ min_count: 2, max_count: 2 });
    await rig.dispatch(uuid, "north", [0]);
    const { store } = rig.cell("north");
    await store.requestDelete([deleteTaskOf(randomUUID(), uuid)]);
    const [task] = rig.deleteTasks("north");
    await store.commitDeleted([await rig.take("north", task!)]);
    expect(await show(uuid)).toMatchObject({ status: "BUILD", "OS-EXT-STS:task_state": "scheduling" });
    await rig.store.failRequests([{ serverUuid: uuid, cell: "north", fault: "No valid host was found." }]);
    expect(await show(uuid)).toMatchObject({ status: "ERROR" });
  });

  it("shows an admin where a server runs, and since when", async () => {
    const uuid = await rig.bootActive("north", 1);
    expect(await show(uuid)).toMatchObject({
      status: "ACTIVE",
      hostId: expect.stringMatching(/^[0-9a-f]{56}$/),
      "OS-EXT-STS:vm_state": "active",
      "OS-EXT-STS:task_state": null,
      "OS-EXT-STS:power_state": 1,
      "OS-EXT-SRV-ATTR:host": hostName(1),
      "OS-EXT-SRV-ATTR:hypervisor_hostname": hostName(1),
      "OS-SRV-USG:launched_at": expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/),
    });
  });

  it("shows the flavor of the server in full from microversion 2.47 on", async () => {
    const server = await show(await rig.boot({ networks: "none" }, LATEST), LATEST);
    expect(server.flavor).toEqual({
      original_name: "m1.tiny",
      vcpus: 1,
      ram: 512,
      disk: 1,
      ephemeral: 0,
      swap: 0,
      extra_specs: { "resources:VCPU": "1" },
    });
    expect(server).toMatchObject({
      locked: false,
      tags: [],
      description: null,
      server_groups: [],
      pinned_availability_zone: null,
    });
  });

  it("shows why no host was found", async () => {
    const uuid = await rig.boot();
    await rig.store.failRequests([
      { serverUuid: uuid, cell: null, fault: "No valid host was found. 3 hosts: no room for VCPU" },
    ]);
    const server = await show(uuid);
    expect(server).toMatchObject({
      status: "ERROR",
      fault: { code: 500, message: "No valid host was found. 3 hosts: no room for VCPU", created: expect.any(String) },
    });
    expect(server.progress).toBeUndefined();
  });

  it("shows every attempt's reason after a build that failed everywhere", async () => {
    const uuid = await rig.boot();
    const task = await rig.dispatch(uuid, "north", [0, 1]);
    const taken = await rig.hop("north", task, 1, "disk is full");
    const reason = `Build failed on every host: ${hostName(0)}: disk is full; ${hostName(1)}: no kernel`;
    await rig.cell("north").store.commitError([{ ...taken, selection: 1, attemptReason: "no kernel", reason }]);
    expect(await show(uuid)).toMatchObject({
      status: "ERROR",
      fault: { message: reason },
      "OS-EXT-SRV-ATTR:host": null,
    });
  });

  it("shows a server of a dead cell as UNKNOWN, and waits for that cell only once", async () => {
    const uuid = await rig.bootActive("north", 0);
    rig.cell("north").dead = true;
    expect(await show(uuid)).toMatchObject({ id: uuid, name: "web", status: "UNKNOWN", "OS-EXT-STS:power_state": 0 });
    expect(await show(uuid)).toMatchObject({ status: "UNKNOWN" });
  });

  it("shows from 2.69 on only the API tier's facts about such a server", async () => {
    const uuid = await rig.bootActive("north", 0);
    rig.cell("north").dead = true;
    const at = { "openstack-api-version": "compute 2.71" };
    const listed = {
      id: uuid,
      status: "UNKNOWN",
      tenant_id: expect.any(String),
      created: expect.any(String),
    };
    const { servers } = (await rig.get("/v2.1/servers/detail", at)).json();
    expect(servers).toEqual([{ ...listed, links: expect.any(Array) }]);
    const brief = (await rig.get("/v2.1/servers", at)).json().servers;
    expect(brief).toEqual([{ id: uuid, status: "UNKNOWN", links: expect.any(Array) }]);
    const { server } = (await rig.get(`/v2.1/servers/${uuid}`, at)).json();
    expect(server).toEqual({
      ...{ ...listed, links: expect.any(Array), user_id: expect.any(String), image: "", server_groups: [] },
      flavor: expect.objectContaining({ original_name: "m1.tiny", vcpus: 1 }),
      ...{ "OS-EXT-AZ:availability_zone": "UNKNOWN", "OS-EXT-STS:power_state": 0 },
    });
    expect(await show(uuid)).toMatchObject({ status: "UNKNOWN", hostId: "", "OS-EXT-STS:vm_state": null });
  });

  it("recognises an id in any spelling of a UUID, and nothing else", async () => {
    const uuid = await rig.boot();
    expect((await show(uuid.toUpperCase())).id).toBe(uuid);
    expect((await show(uuid.replaceAll("-", ""))).id).toBe(uuid);
    for (const id of ["1", "nope", "0".repeat(36), crypto.randomUUID()]) {
      const answer = await rig.get(`/v2.1/servers/${id}`);
      expect(answer.json()).toEqual({
        itemNotFound: { code: 404, message: expect.stringMatching(/^Instance .* could not be found\.$/) },
      });
    }
  });
});

describe("GET /servers", () => {
  it("lists newest first, in pages with links to the next ones", async () => {
    const booted: string[] = [];
    for (let index = 0; index < 5; index++) booted.push(await rig.boot({ name: `web-${index}` }));
    const all = ids(await list());
    expect([...all].sort()).toEqual([...booted].sort());
    const paged: string[] = [];
    let url: string | null = "/v2.1/servers?limit=2";
    for (let page = 0; url !== null && page < 10; page++) {
      const answer: { servers: Shown[]; servers_links?: { href: string }[] } = (await rig.get(url)).json();
      expect(answer.servers.length).toBeLessThanOrEqual(2);
      paged.push(...ids(answer.servers));
      url = answer.servers_links?.[0]?.href.replace(/^http:\/\/[^/]+/, "") ?? null;
    }
    expect(paged).toEqual(all);
  });

  it("shows only id, name and links, without asking a cell", async () => {
    await rig.close();
    rig = await ApiRig.start(ALL_PATHS);
    const uuid = await rig.boot();
    const answer = await rig.get("/compute/v2.1/servers");
    expect(answer.json()).toEqual({
      servers: [
        {
          id: uuid,
          name: "web",
          links: [
            { rel: "self", href: `http://localhost:80/compute/v2.1/servers/${uuid}` },
            { rel: "bookmark", href: `http://localhost:80/compute/servers/${uuid}` },
          ],
        },
      ],
    });
  });

  it("merges the answers of all cells, each with its own states", async () => {
    const waiting = await rig.boot();
    const north = await rig.bootActive("north", 0);
    const south = await rig.bootActive("south", 3);
    const shown = new Map((await list()).map((server) => [server.id, server.status]));
    expect(shown).toEqual(
      new Map([
        [waiting, "BUILD"],
        [north, "ACTIVE"],
        [south, "ACTIVE"],
      ]),
    );
  });

  it("lists the servers of a dead cell as UNKNOWN with the others", async () => {
    const north = await rig.bootActive("north", 0);
    const south = await rig.bootActive("south", 3);
    rig.cell("north").dead = true;
    const shown = new Map((await list()).map((server) => [server.id, server.status]));
    expect(shown).toEqual(
      new Map([
        [north, "UNKNOWN"],
        [south, "ACTIVE"],
      ]),
    );
  });

  it("filters by fields that only cells know, across pages", async () => {
    const active = await rig.bootActive("north", 0, { name: "runs" });
    for (let index = 0; index < 5; index++) await rig.boot({ name: `waits-${index}` });
    expect(ids(await list("?status=ACTIVE&limit=1"))).toEqual([active]);
    expect(ids(await list(`?host=${hostName(0)}`))).toEqual([active]);
    expect(ids(await list("?status=active&status=error"))).toEqual([active]);
    expect(await list("?status=build")).toHaveLength(5);
    expect(await list("?status=SHELVED")).toEqual([]);
    expect(ids(await list("?name=runs"))).toEqual([active]);
    expect(await list("?name=^waits-")).toHaveLength(5);
    expect(await list("?name=4$")).toHaveLength(1);
    expect(await list("?flavor=2")).toEqual([]);
  });

  it("lists servers that changed since a time, including deleted ones", async () => {
    const kept = await rig.bootActive("north", 0);
    const gone = await rig.bootActive("north", 1);
    const waiting = await rig.boot();
    const since = new Date(Date.now() - 60_000).toISOString();
    await rig.delete(`/v2.1/servers/${gone}`);
    const [task] = rig.deleteTasks("north");
    await rig.cell("north").store.commitDeleted([await rig.take("north", task!)]);
    const shown = new Map((await list(`?changes-since=${since}`)).map((server) => [server.id, server.status]));
    expect(shown).toEqual(
      new Map([
        [kept, "ACTIVE"],
        [gone, "DELETED"],
        [waiting, "BUILD"],
      ]),
    );
    const [first] = await list(`?changes-since=${since}&limit=1`);
    const rest = await list(`?changes-since=${since}&marker=${first?.id}`);
    expect([first?.id, ...ids(rest)].sort()).toEqual([kept, gone, waiting].sort());
    expect(await list(`?changes-since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
  });

  it.each([
    ["limit=-1", /limit/],
    ["limit=x", /limit/],
    ["marker=nope", /marker \[nope\] not found/],
    [`marker=${crypto.randomUUID()}`, /marker .* not found/],
    ["changes-since=yesterday", /changes-since/],
    ["sort_key=name", /sort_key/],
    ["sort_dir=up", /Unknown sort direction/],
    ["sort_dir=asc&sort_dir=asc", /Sort direction size exceeds sort key size/],
    ["name=(", /It is not a 'regex' of RE2: .*missing closing/],
    ["name=(a)%5C1", /invalid escape sequence/],
    ["name=(.{0,400}b){2}", /more than 1000 parts/],
    ["all_tenants=perhaps", /all_tenants/],
  ])("refuses ?%s with 400", async (query, message) => {
    const answer = await rig.get(`/v2.1/servers?${query}`);
    expect(answer.json()).toEqual({ badRequest: { code: 400, message: expect.stringMatching(message) } });
  });

  it("looks for an expression with many choices in a row in no more time than for any other", async () => {
    await rig.boot({ name: "a".repeat(200) });
    // Trying one choice after the other, this list would never be answered.
    for (const expression of [`${"a?".repeat(40)}${"a".repeat(100)}b`, `${"(a|a)".repeat(40)}b`, "(a*)*(a*)*b"])
      expect((await rig.get(`/v2.1/servers?name=${encodeURIComponent(expression)}`)).json()).toEqual({ servers: [] });
    const found = (await rig.get(`/v2.1/servers?name=${encodeURIComponent("^(a+)+$")}`)).json().servers;
    expect(found).toHaveLength(1);
  });

  it("ignores unknown parameters before microversion 2.75 and refuses them from then on", async () => {
    expect((await rig.get("/v2.1/servers?colour=red")).statusCode).toBe(200);
    expect((await rig.get("/v2.1/servers?colour=red", LATEST)).statusCode).toBe(400);
    expect((await rig.get("/v2.1/servers?status=nope", LATEST)).statusCode).toBe(400);
    expect((await rig.get("/v2.1/servers?limit=0")).json()).toEqual({ servers: [] });
  });
});

describe("GET /servers through a filter", () => {
  it("returns no empty page while a matching server follows, however far behind", async () => {
    const failed = [await rig.boot({ name: "old-1" }), await rig.boot({ name: "old-2" })];
    await rig.store.failRequests(
      failed.map((serverUuid) => ({ serverUuid, cell: null, fault: "No valid host was found." })),
    );
    const [record] = await rig.store.requests([failed[0]!]);
    const { spec, createdAtMs } = record!;
    const others = Array.from({ length: 10_500 }, (_, index) => ({
      ...{ ...spec, uuid: crypto.randomUUID(), name: "web", createdAtMs: createdAtMs + 10_000 + index },
    }));
    await rig.store.accept(others);
    const queries = ["status=ERROR", "name=old-", "name=^old-", "status=ERROR&name=old", `uuid=${failed[0]}`];
    for (const query of queries) {
      const { servers, servers_links } = (await rig.get(`/v2.1/servers?limit=1&${query}`)).json();
      expect(servers, query).toHaveLength(1);
      const next = servers_links?.[0].href.replace(/^.*?\/v2/, "/v2");
      const seen = next === undefined ? servers : [...servers, ...(await rig.get(next)).json().servers];
      expect(ids(seen).toSorted(), query).toEqual(query.startsWith("uuid") ? [failed[0]] : failed.toSorted());
    }
    expect((await rig.get("/v2.1/servers?status=PAUSED&limit=5")).json()).toEqual({ servers: [] });
  });
});

describe("projects", () => {
  const ann = { "x-auth-token": "ann:blue" };
  const bob = { "x-auth-token": "bob:red" };
  const admin = { "x-auth-token": "admin:ops" };

  beforeEach(async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" });
  });

  it("hides another project's server when it is shown, deleted, listed or used as a marker", async () => {
    const uuid = await rig.boot({}, ann);
    expect((await rig.get(`/v2.1/servers/${uuid}`, ann)).statusCode).toBe(200);
    expect((await rig.get(`/v2.1/servers/${uuid}`, bob)).statusCode).toBe(404);
    expect((await rig.delete(`/v2.1/servers/${uuid}`, bob)).statusCode).toBe(404);
    expect((await rig.get(`/v2.1/servers/${uuid}/os-instance-actions`, bob)).statusCode).toBe(404);
    expect((await rig.get("/v2.1/servers", bob)).json().servers).toEqual([]);
    expect((await rig.get(`/v2.1/servers?marker=${uuid}`, bob)).statusCode).toBe(400);
    expect(await rig.store.requests([uuid])).toMatchObject([{ state: "accepted" }]);
  });

  it("shows admins all projects on request, and ignores a filter by host of others", async () => {
    const uuid = await rig.boot({}, ann);
    expect((await rig.get("/v2.1/servers", admin)).json().servers).toEqual([]);
    expect(ids((await rig.get("/v2.1/servers?all_tenants", admin)).json().servers)).toEqual([uuid]);
    expect(ids((await rig.get("/v2.1/servers?all_tenants=1&project_id=red", admin)).json().servers)).toEqual([]);
    expect((await rig.get("/v2.1/servers?all_tenants=1", ann)).json()).toMatchObject({ forbidden: { code: 403 } });
    expect(ids((await rig.get("/v2.1/servers?host=x", ann)).json().servers)).toEqual([uuid]);
    expect((await rig.get("/v2.1/servers?all_tenants=1&host=x", admin)).json().servers).toEqual([]);
    expect(await show(uuid, ann)).not.toHaveProperty("OS-EXT-SRV-ATTR:host");
  });

  it("answers 401 without a token", async () => {
    for (const headers of [{}, { "x-auth-token": "a b:c" }]) {
      const answer = await rig.get("/v2.1/servers", headers);
      expect(answer.statusCode).toBe(401);
      expect(answer.json()).toMatchObject({ unauthorized: { code: 401 } });
    }
  });
});
