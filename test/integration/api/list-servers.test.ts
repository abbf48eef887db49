import { afterAll, beforeAll, describe, expect, it, test, vi } from "vitest";
import { hostName } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
/** Returns the servers by name: three in the cells, and one that waits for a host. */
const byName = new Map<string, string>();
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2", networks: "simple" });
  const keypair = { name: "web-key", public_key: KEY };
  expect((await rig.post("/v2.1/os-keypairs", { keypair }, as(OWNER, 90))).statusCode).toBe(201);
  const zone = { name: "zone", availability_zone: "edge" };
  const made = await rig.post("/v2.1/os-aggregates", { aggregate: zone }, as("admin:p", 90));
  const action = `/v2.1/os-aggregates/${made.json().aggregate.id}/action`;
  expect((await rig.post(action, { add_host: { host: hostName(1) } }, as("admin:p", 90))).statusCode).toBe(200);
  for (const [cell, host, fields] of [
    ["north", 0, { key_name: "web-key", name: "alpha", description: "first", tags: ["blue"], accessIPv4: "10.0.0.1" }],
    ["north", 1, { name: "beta-1", tags: ["blue", "green"], config_drive: true, "OS-DCF:diskConfig": "MANUAL" }],
    ["south", 3, { name: "beta-2", hostname: "gamma", tags: ["red"], metadata: { a: "b" } }],
  ] as const) {
    const id = await create(fields);
    const task = await rig.dispatch(id, cell, [host]);
    await rig.cell(cell).store.commitActive([{ ...(await rig.take(cell, task)), selection: 0 }]);
  }
  await create({ name: "waits" });
  await act("alpha", { lock: null });
  await act("beta-2", { "os-stop": null });
});
afterAll(() => rig.close());

const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHhLvOZ4OeDnHX6OFOHzQmfSSGMpzZPS2ZWTZlXiPDKz dora@laptop";
const OWNER = "dora:p";
const as = (token: string, minor: number) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
async function create(fields: Readonly<Record<string, unknown>>): Promise<string> {
  const server = { flavorRef: "1", networks: "none", ...fields };
  const answer = await rig.post("/v2.1/servers", { server }, as(OWNER, 96));
  expect(answer.statusCode, answer.body).toBe(202);
  byName.set(String(fields.name), answer.json().server.id);
  return answer.json().server.id;
}
const act = (name: string, body: object) => rig.post(`/v2.1/servers/${byName.get(name)}/action`, body, as(OWNER, 96));
const names = async (query: string, token = "admin:p", minor = 96): Promise<string[]> => {
  const answer = await rig.get(`/v2.1/servers?${query}`, as(token, minor));
  expect(answer.statusCode, `${query}: ${answer.body}`).toBe(200);
  return answer.json().servers.map(({ name }: { name: string }) => name);
};

describe("filters of GET /servers", () => {
  it.each([
    ["name=^beta", ["beta-1", "beta-2"]],
    ["name=beta-[12]$", ["beta-1", "beta-2"]],
    ["name=a.*a", ["alpha"]],
    ["name=alpha|waits", ["alpha", "waits"]],
    ["name=ALPHA", []],
    ["tags=blue", ["alpha", "beta-1"]],
    ["tags=blue,green", ["beta-1"]],
    ["tags-any=green,red", ["beta-1", "beta-2"]],
    ["not-tags=blue", ["beta-2", "waits"]],
    ["not-tags=blue,green", ["alpha", "beta-2", "waits"]],
    ["not-tags-any=blue,red", ["waits"]],
    ["tags=blue&not-tags-any=green", ["alpha"]],
    ["locked=true", ["alpha"]],
    ["locked=false", ["beta-1", "beta-2", "waits"]],
    ["locked_by=owner", ["alpha"]],
    ["vm_state=active", ["alpha", "beta-1", "beta-2"]],
    ["vm_state=building", ["waits"]],
    ["task_state=powering-off", ["beta-2"]],
    ["task_state=powering-off&status=ACTIVE", ["beta-2"]],
    ["task_state=powering-off&vm_state=stopped", []],
    ["task_state=scheduling", ["waits"]],
    ["task_state=none", []],
    ["vm_state=building&status=ACTIVE", []],
    ["vm_state=stopped", []],
    ["power_state=1", ["alpha", "beta-1", "beta-2"]],
    ["power_state=0", ["waits"]],
    ["power_state=4", []],
    ["availability_zone=nova", ["alpha", "beta-2"]],
    ["availability_zone=edge", ["beta-1"]],
    ["availability_zone=^ed&status=ACTIVE", ["beta-1"]],
    ["availability_zone=edge&sort_key=host", ["beta-1"]],
    ["availability_zone=none", []],
    ["key_name=web-key", ["alpha"]],
    ["key_name=eb-", ["alpha"]],
    ["key_name=eb-&sort_key=created_at&sort_dir=asc", ["alpha"]],
    ["key_name=^web-key$&user_id=dora", ["alpha"]],
    ["key_name=^eb-$", []],
    ["key_name=^eb", []],
    ["key_name=w.*y", ["alpha"]],
    ["key_name=other", []],
    [`host=${hostName(1)}`, ["beta-1"]],
    [`node=${hostName(3)}`, ["beta-2"]],
    ["host=none", []],
    ["flavor=1", ["alpha", "beta-1", "beta-2", "waits"]],
    ["flavor=2", []],
    ["image=none", []],
    ["launch_index=0&name=a$", ["alpha"]],
    ["user_id=dora", ["alpha", "beta-1", "beta-2", "waits"]],
    ["user_id=eve", []],
    ["progress=0&key_name=x", []],
    ["ip=10.0.0.1", []],
    ["launched_at=^20", ["alpha", "beta-1", "beta-2"]],
    ["deleted=true", []],
    ["status=BUILD", ["waits"]],
    ["status=SHUTOFF&status=RESIZE", []],
    ["status=ACTIVE&status=BUILD", ["alpha", "beta-1", "beta-2", "waits"]],
    ["changes-since=2000-01-01T00:00:00Z", ["alpha", "beta-1", "beta-2", "waits"]],
    ["changes-before=2000-01-01T00:00:00Z", []],
  ])("with %s find %j", async (query, expected) => {
    expect((await names(query)).toSorted()).toEqual(expected);
  });
});

describe("filters that indexes serve", () => {
  it.each(["flavor=1", "user_id=dora", "flavor=1&sort_key=created_at&sort_dir=asc", "flavor=1&sort_key=host"])(
    "with %s find the same servers one at a time",
    async (query) => {
      for (const token of ["admin:p", OWNER]) {
        const allowed = query.includes("host") ? "admin:p" : token;
        const whole = await names(query, allowed);
        const single: string[] = [];
        for (let marker = ""; single.length < 9; marker = `&marker=${byName.get(single.at(-1) ?? "")}`) {
          const [name] = await names(`${query}&limit=1${marker}`, allowed);
          if (name === undefined) break;
          single.push(name);
        }
        expect([whole.length, single]).toEqual([4, whole]);
      }
    },
  );

  it("by a task state, a zone or a key do not search the whole list", async () => {
    const scan = vi.spyOn(rig.store, "scanRequests");
    try {
      expect(await names("task_state=powering-off")).toEqual(["beta-2"]);
      expect(await names("all_tenants=1&availability_zone=edge")).toEqual(["beta-1"]);
      expect(await names("all_tenants=1&key_name=web-key")).toEqual(["alpha"]);
      expect(scan).not.toHaveBeenCalled();
    } finally {
      scan.mockRestore();
    }
  });
});

describe("filters by fields that few servers have", () => {
  const others = (query: string) => names(`all_tenants=1&project_id=q&${query}`);
  const IN_Q = "dora:q";

  it.each([
    ["description=first", ["alpha"]],
    ["description=^beta", []],
    ["config_drive=true", ["beta-1"]],
    ["config_drive=False", ["alpha", "beta-2", "waits"]],
    ["config_drive=zz", []],
    ["auto_disk_config=0", ["beta-1"]],
    ["hostname=gam", ["beta-2"]],
    ["hostname=beta-2", []],
    ["hostname=beta", ["beta-1"]],
    ["hostname=ta-1", ["beta-1"]],
    ["hostname=wai.*s", ["waits"]],
    ["access_ip_v4=10.0", ["alpha"]],
    ["access_ip_v6=fd", []],
    ["ip6=fd00", []],
    ["launch_index=3", []],
    ["kernel_id=x", []],
    ["kernel_id=^$", ["alpha", "beta-1", "beta-2", "waits"]],
    ["terminated_at=20", []],
    ["progress=5", []],
    ["root_device_name=sda", []],
    ["root_device_name=vda", ["alpha", "beta-1", "beta-2"]],
    ["created_at=^20", ["alpha", "beta-1", "beta-2", "waits"]],
    ["created_at=1999-12", []],
    [`created_at=${new Date().getUTCFullYear() + 1}-`, []],
  ])("with %s find %j", async (query, expected) => {
    expect((await names(query)).toSorted()).toEqual(expected);
  });

  it("find what users have changed, and the addresses of ports, without a search of the whole list", async () => {
    const ids: string[] = [];
    for (const fields of [{ name: "late" }, { name: "Größe" }, { name: "on-the-net", networks: "auto" }]) {
      const server = { flavorRef: "1", networks: "none", ...fields };
      const answer = await rig.post("/v2.1/servers", { server }, as(IN_Q, 96));
      expect(answer.statusCode, answer.body).toBe(202);
      ids.push(answer.json().server.id);
    }
    const [late = "", , onTheNet = ""] = ids;
    const task = await rig.dispatch(onTheNet, "south", [3]);
    await rig.cell("south").store.commitActive([{ ...(await rig.take("south", task)), selection: 0 }]);
    // Early microversions make the name the description.
    const early = { server: { name: "old-name", flavorRef: "1" } };
    const made = await rig.post("/v2.1/servers", early, as(IN_Q, 1));
    expect(made.statusCode, made.body).toBe(202);
    const renaming = { server: { name: "new-name" } };
    expect((await rig.put(`/v2.1/servers/${made.json().server.id}`, renaming, as(IN_Q, 1))).statusCode).toBe(200);
    const changed = { hostname: "renamed", description: "second", accessIPv4: "10.9.8.7", accessIPv6: "fd00::9" };
    const answer = await rig.put(`/v2.1/servers/${late}`, { server: changed }, as(IN_Q, 96));
    expect(answer.statusCode, answer.body).toBe(200);
    const { addresses } = (await rig.get(`/v2.1/servers/${onTheNet}`, as(IN_Q, 96))).json().server;
    const [{ addr }] = Object.values(addresses).flat() as [{ addr: string }];
    const scan = vi.spyOn(rig.store, "scanRequests");
    try {
      for (const [query, expected] of [
        ["hostname=renam", ["late"]],
        ["hostname=late", []],
        ["description=sec", ["late"]],
        ["description=old-name", ["new-name"]],
        ["access_ip_v4=9.8", ["late"]],
        ["access_ip_v6=^fd00::9$", ["late"]],
        [`ip=${addr}`, ["on-the-net"]],
        [`ip=^${addr.replaceAll(".", "\\.")}$`, ["on-the-net"]],
        ["ip6=fd00", []],
        ["node=no-such-host", []],
        [`node=${hostName(3).slice(1)}`, ["on-the-net"]],
        ["config_drive=true", []],
        ["config_drive=zz", []],
        ["locked_by=owner", []],
      ] as const)
        expect([query, await others(query)]).toEqual([query, expected]);
      expect(scan).not.toHaveBeenCalled();
    } finally {
      scan.mockRestore();
    }
    expect(await others("hostname=größe")).toEqual(["Größe"]);
    expect(await others(`ip=${addr.slice(0, -2)}`)).toContain("on-the-net");
  });
});

describe("filters of some callers", () => {
  it("find a server by its uuid", async () => {
    expect(await names(`uuid=${byName.get("waits")}`)).toEqual(["waits"]);
    expect(await names("uuid=nonsense")).toEqual([]);
  });

  it("of admins are ignored when others send them, until their microversion", async () => {
    expect(await names("vm_state=building", OWNER, 82)).toHaveLength(4);
    expect(await names("vm_state=building", OWNER, 83)).toEqual(["waits"]);
    expect(await names("host=none", OWNER, 96)).toHaveLength(4);
    expect(await names("hostname=gam", OWNER, 89)).toHaveLength(4);
    expect(await names("hostname=gam", OWNER, 90)).toEqual(["beta-2"]);
    expect(await names("tags=red", OWNER, 25)).toHaveLength(4);
    expect(await names("tags=red", OWNER, 26)).toEqual(["beta-2"]);
    expect(await names("locked=true", OWNER, 72)).toHaveLength(4);
    const refused = await rig.get("/v2.1/servers?status=deleted", as(OWNER, 96));
    expect([refused.statusCode, refused.json().forbidden.message]).toEqual([
      403,
      "Only administrators may list deleted instances",
    ]);
    for (const [query, minor] of [
      ["locked=perhaps", 73],
      ["changes-since=2001-01-01T00:00:00Z&changes-before=2000-01-01T00:00:00Z", 66],
      ["metadata=x", 75],
    ] as const)
      expect([query, (await rig.get(`/v2.1/servers?${query}`, as(OWNER, minor))).statusCode]).toEqual([query, 400]);
  });

  it("find deleted servers for admins", async () => {
    const id = await create({ name: "gone" });
    const task = await rig.dispatch(id, "north", [2]);
    await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
    await rig.delete(`/v2.1/servers/${id}`, as(OWNER, 96));
    const deletion = rig.deleteTasks("north").find(({ server }) => server?.uuid === id);
    await rig.cell("north").store.commitDeleted([await rig.take("north", deletion!)]);
    expect(await names("deleted=true")).toEqual(["gone"]);
    expect(await names("status=deleted")).toEqual(["gone"]);
    expect(await names("deleted=true", OWNER)).toHaveLength(4);
  });
});

describe("orders of GET /servers", () => {
  it.each([
    ["sort_key=display_name&sort_dir=asc", ["alpha", "beta-1", "beta-2", "waits"]],
    ["sort_key=display_name", ["waits", "beta-2", "beta-1", "alpha"]],
    ["sort_key=vm_state&sort_dir=desc&sort_key=display_name&sort_dir=asc", ["waits", "alpha", "beta-1", "beta-2"]],
    ["sort_key=locked&sort_key=display_name&sort_dir=desc&sort_dir=asc", ["alpha", "beta-1", "beta-2", "waits"]],
    ["sort_key=host&sort_dir=asc", ["waits", "alpha", "beta-1", "beta-2"]],
    ["sort_key=task_state&sort_dir=desc&limit=2", ["waits", "beta-2"]],
  ])("by %s are %j", async (query, expected) => {
    expect(await names(query)).toEqual(expected);
  });

  test("oldest first is the reverse of the default", async () => {
    const newest = await names("");
    expect(await names("sort_key=created_at&sort_dir=asc")).toEqual(newest.toReversed());
  });

  test("are kept from page to page", async () => {
    const query = "sort_key=display_name&sort_dir=asc&limit=2";
    const first = (await rig.get(`/v2.1/servers?${query}`, as("admin:p", 96))).json();
    const next = first.servers_links[0].href.replace(/^.*?\?/, "");
    expect(await names(next)).toEqual(["beta-2", "waits"]);
    const filtered = await names(`${query}&tags=blue&marker=${byName.get("alpha")}`);
    expect(filtered).toEqual(["beta-1"]);
  });

  test("by hosts are for admins, and keys that sort nothing are ignored before 2.75", async () => {
    const ask = async (query: string, token: string, minor: number) =>
      (await rig.get(`/v2.1/servers?${query}`, as(token, minor))).statusCode;
    expect(await ask("sort_key=host", OWNER, 96)).toBe(403);
    expect([await ask("sort_key=vcpus", OWNER, 74), await ask("sort_key=vcpus", OWNER, 75)]).toEqual([200, 400]);
    expect([await ask("sort_key=locked", OWNER, 72), await ask("sort_key=locked", OWNER, 75)]).toEqual([200, 200]);
    expect(await ask("sort_key=colour", OWNER, 1)).toBe(400);
  });
});
