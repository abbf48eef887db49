import { afterAll, beforeAll, expect, it } from "vitest";
import { hostName } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

const ADMIN = { "x-auth-token": "admin:ops", "openstack-api-version": "compute 2.42" };
const HOSTS = "/v2.1/os-hosts";

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
  for (const project of ["p1", "p1", "p2"]) {
    const body = { server: { name: "web", flavorRef: "1" } };
    const { id } = (await rig.post("/v2.1/servers", body, { "x-auth-token": `ann:${project}` })).json().server;
    const task = await rig.dispatch(id, "north", [0]);
    await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  }
});
afterAll(() => rig.close());

it("lists the hosts of enabled services, by zone if one is named", async () => {
  const aggregate = (
    await rig.post("/v2.1/os-aggregates", { aggregate: { name: "a", availability_zone: "z1" } }, ADMIN)
  ).json().aggregate;
  await rig.post(`/v2.1/os-aggregates/${aggregate.id}/action`, { add_host: { host: hostName(2) } }, ADMIN);
  const { hosts } = (await rig.get(HOSTS, ADMIN)).json();
  expect(hosts).toContainEqual({ host_name: hostName(2), service: "compute", zone: "z1" });
  expect(hosts).toContainEqual({ host_name: "conductor", service: "conductor", zone: "internal" });
  expect((await rig.get(`${HOSTS}?zone=z1`, ADMIN)).json().hosts).toHaveLength(1);
});

it("shows what a host has and has in use, and by which projects", async () => {
  const { host } = (await rig.get(`${HOSTS}/${hostName(0)}`, ADMIN)).json();
  const lines = host.map(({ resource }: { resource: Record<string, unknown> }) => [
    resource.project,
    resource.cpu,
    resource.memory_mb,
    resource.disk_gb,
  ]);
  expect(lines).toEqual([
    ["(total)", 8, 0, 0],
    ["(used_now)", 3, 0, 0],
    ["(used_max)", 3, 1536, 3],
    ["p1", 2, 1024, 2],
    ["p2", 1, 512, 1],
  ]);
  expect((await rig.get(`${HOSTS}/nope`, ADMIN)).json().itemNotFound.message).toBe(
    "Host 'nope' is not mapped to any cell",
  );
});

it("enables and disables a host, and supports nothing else, like Nova's drivers for Linux", async () => {
  const put = (body: unknown, headers = ADMIN) => rig.put(`${HOSTS}/${hostName(1)}`, body, headers);
  const statusOf = async () =>
    (await rig.get(`/v2.1/os-services?host=${hostName(1)}`, ADMIN)).json().services[0].status;
  expect((await put({ status: "disable" })).json()).toEqual({ host: hostName(1), status: "disabled" });
  expect(await statusOf()).toBe("disabled");
  expect((await put({ status: "ENABLE" })).json()).toEqual({ host: hostName(1), status: "enabled" });
  expect(await statusOf()).toBe("enabled");
  expect((await put({ maintenance_mode: "enable", status: "disable" })).statusCode).toBe(501);
  expect(await statusOf()).toBe("enabled");
  for (const body of [{}, { status: "off" }, { other: "enable" }]) expect((await put(body)).statusCode).toBe(400);
  for (const action of ["startup", "shutdown", "reboot"]) {
    expect((await rig.get(`${HOSTS}/${hostName(1)}/${action}`, ADMIN)).statusCode).toBe(501);
    expect((await rig.get(`${HOSTS}/nope/${action}`, ADMIN)).statusCode).toBe(404);
  }
});

it("is for admins, by Nova's policies, and ends with microversion 2.42", async () => {
  const member = { ...ADMIN, "x-auth-token": "ann:p1" };
  const later = { ...ADMIN, "openstack-api-version": "compute 2.43" };
  for (const [method, path, rule] of [
    ["GET", "", "list"],
    ["GET", "/host", "show"],
    ["PUT", "/host", "update"],
    ["GET", "/host/startup", "start"],
    ["GET", "/host/shutdown", "shutdown"],
    ["GET", "/host/reboot", "reboot"],
  ] as const) {
    const ask = (headers: Record<string, string>) =>
      method === "GET" ? rig.get(HOSTS + path, headers) : rig.put(HOSTS + path, { status: "disable" }, headers);
    expect((await ask(member)).json().forbidden.message).toBe(
      `Policy doesn't allow os_compute_api:os-hosts:${rule} to be performed.`,
    );
    expect((await ask(later)).statusCode).toBe(404);
  }
});
