import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StoreError } from "../../../core/stores/store-error.ts";
import { DEFAULT_API_SETTINGS } from "../../../services/api/settings.ts";
import { conductorId, hostName } from "../../contract/cell-fixtures.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const at = (minor: number) => ({ "openstack-api-version": `compute 2.${minor}` });
const UNSEEN_MS = 200;

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ cells: { ...DEFAULT_API_SETTINGS.cells, agentUnseenMs: UNSEEN_MS } });
});
afterEach(() => rig.close());

const idOf = async (host: string, minor = 53): Promise<string | number> => {
  const { services } = (await rig.get(`/v2.1/os-services?host=${host}`, at(minor))).json();
  return services[0].id;
};
const remove = (id: string | number, minor = 53) => rig.delete(`/v2.1/os-services/${id}`, at(minor));
const hostNames = async () =>
  (await rig.get("/v2.1/os-hypervisors", at(53)))
    .json()
    .hypervisors.map((one: { hypervisor_hostname: string }) => one.hypervisor_hostname);
const aggregateOf = async (host: string): Promise<number> => {
  const { id } = (await rig.post("/v2.1/os-aggregates", { aggregate: { name: "fast" } }, at(41))).json().aggregate;
  await rig.post(`/v2.1/os-aggregates/${id}/action`, { add_host: { host } });
  return id;
};
const hostsOf = async (aggregate: number) => (await rig.get(`/v2.1/os-aggregates/${aggregate}`)).json().aggregate.hosts;

test("a host whose agent was stopped goes with its providers, its aggregates and its ratios; by a number before 2.53", async () => {
  const aggregate = await aggregateOf(hostName(1));
  await rig.operators.changeRatios({ kind: "host", host: hostName(1) }, { VCPU: 4 });
  const answer = await remove(await idOf(hostName(1)));
  expect([answer.statusCode, answer.body]).toEqual([204, ""]);
  expect(await hostNames()).toEqual([0, 2, 3, 4, 5].map(hostName));
  expect(await hostsOf(aggregate)).toEqual([]);
  expect((await rig.operators.ratioSettings()).byHost.size).toBe(0);
  expect((await rig.cell("north").ledger.dump()).providers.map(({ name }) => name)).toEqual([0, 2].map(hostName));
  await eventually(
    "the API database forgets it",
    async () => !(await rig.hostMap.hostsOf("north")).includes(hostName(1)),
  );
  expect((await remove(await idOf(hostName(4), 52), 52)).statusCode).toBe(204);
  expect(await hostNames()).toEqual([0, 2, 3, 5].map(hostName));
});

test("a host whose agent goes on being heard stays, with its aggregates, until an operator forces it down", async () => {
  const aggregate = await aggregateOf(hostName(1));
  const id = await idOf(hostName(1));
  const beat = () => rig.cell("north").store.agentsSeen(["agent-north"], UNSEEN_MS);
  await beat();
  const heartbeat = setInterval(() => void beat(), UNSEEN_MS / 20);
  try {
    const refused = await remove(id);
    expect([refused.statusCode, refused.json().conflictingRequest.message]).toEqual([
      ...[409, expect.stringContaining("Stop the agent")],
    ]);
    expect(await hostsOf(aggregate)).toEqual([hostName(1)]);
    await rig.put(`/v2.1/os-services/${id}`, { forced_down: true }, at(53));
    expect((await remove(id)).statusCode).toBe(204);
  } finally {
    clearInterval(heartbeat);
  }
  expect(await hostsOf(aggregate)).toEqual([]);
});

test("a host with servers is refused with Nova's message", async () => {
  const server = await rig.boot();
  await rig.dispatch(server, "north", [1]);
  const id = await idOf(hostName(1));
  const refused = await remove(id);
  expect([refused.statusCode, refused.json().conflictingRequest.message]).toEqual([
    409,
    "Unable to delete compute service that is hosting instances. Migrate or delete the instances first.",
  ]);
  expect(await hostNames()).toContain(hostName(1));
});

test("ids that no service has are refused as by Nova", async () => {
  expect((await remove("00000000-0000-4000-8000-000000000000")).statusCode).toBe(404);
  expect([(await remove("7")).statusCode, (await remove("x", 52)).statusCode]).toEqual([400, 400]);
  expect((await remove("7", 52)).statusCode).toBe(404);
  const id = await idOf(hostName(1));
  rig.cell("north").dead = true;
  expect((await remove(id)).statusCode).toBe(503);
});

test("a call that broke off after the cell's part is ended by its repetition", async () => {
  const aggregate = await aggregateOf(hostName(1));
  const id = await idOf(hostName(1));
  await rig.cell("north").store.hostAdmin().removeHost(hostName(1), 0);
  expect(await hostsOf(aggregate)).toEqual([hostName(1)]);
  expect((await remove(id)).statusCode).toBe(204);
  expect(await hostsOf(aggregate)).toEqual([]);
  expect((await remove(id)).statusCode).toBe(404);
});

test.each(["forgetHost", "changeRatios", "removeHost"] as const)(
  "a call that broke off in the API database, because %s failed, is ended by its repetition",
  async (failing) => {
    const aggregate = failing === "removeHost" ? await aggregateOf(hostName(1)) : null;
    await rig.operators.changeRatios({ kind: "host", host: hostName(1) }, { VCPU: 4 });
    await rig.hostMap.keepHosts("north", [0, 1, 2].map(hostName));
    const id = await idOf(hostName(1));
    const fault = new StoreError("unavailable", failing, "the database is away");
    if (failing === "forgetHost") vi.spyOn(rig.hostMap, failing).mockRejectedValueOnce(fault);
    else vi.spyOn(rig.operators, failing).mockRejectedValueOnce(fault);
    expect((await remove(id)).statusCode).toBe(503);
    expect((await remove(id)).statusCode).toBe(204);
    expect((await rig.operators.ratioSettings()).byHost.size).toBe(0);
    expect(await rig.hostMap.hostsOf("north")).not.toContain(hostName(1));
    if (aggregate !== null) expect(await hostsOf(aggregate)).toEqual([]);
  },
);

test("ratios that a call has left behind are removed also if the host was in no aggregate", async () => {
  const id = await idOf(hostName(1));
  await rig.operators.changeRatios({ kind: "host", host: hostName(1) }, { VCPU: 4 });
  await rig.cell("north").store.hostAdmin().removeHost(hostName(1), 0);
  expect((await remove(id)).statusCode).toBe(204);
  expect((await rig.operators.ratioSettings()).byHost.size).toBe(0);
});

test("a conductor can be removed when its lease has expired, and a running one or a scheduler cannot", async () => {
  await rig.softState.announce("scheduler-1", 60_000);
  await rig.cell("north").store.renewLease({ id: conductorId(9), name: "old", leaseMs: 0 });
  expect((await remove(await idOf("old"))).statusCode).toBe(204);
  expect((await rig.get("/v2.1/os-services?host=old", at(53))).json().services).toEqual([]);
  for (const running of ["scheduler-1", "conductor"]) {
    const refused = await remove(await idOf(running));
    expect([refused.statusCode, refused.json().conflictingRequest.message]).toEqual([
      ...[409, expect.stringContaining("is running. Stop it first")],
    ]);
  }
});
