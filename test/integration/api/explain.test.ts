import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Decision } from "../../../core/scheduling/explain/decision.ts";
import { hostName, serverId, serverSpec } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
  await rig.store.createFlavor({
    ...{ id: "cpu", name: "only-cpu", vcpus: 1, memoryMib: 512, diskGib: 1, ephemeralGib: 0, swapMib: 0 },
    extraSpecs: { "resources:MEMORY_MB": "0", "resources:DISK_GB": "0" },
    ...{ rxtxFactor: 1, isPublic: true, description: null },
  });
});
afterEach(() => rig.close());

const EFFORT = { tries: 2, lostRaces: 1, looks: 0, viewLagMs: 4 };
const PLACED: Decision = {
  ...{ outcome: "placed", cell: "north", host: hostName(0), alternates: [hostName(1)], feasible: 3, ...EFFORT },
  weights: [{ host: hostName(0), weight: 2, parts: { cpu: [8, 1, 2] } }],
};
const explain = (body: object) => rig.post("/berth/v1/explain", { flavor: "cpu", ...body });
const keep = (serverUuid: string, decision: Decision, requestId = "req-1") =>
  rig.decisions.putDecisions([{ serverUuid, requestId, scheduler: "scheduler-1", atMs: 1_700_000_000_000, decision }]);

describe("the explanation of a possible server", () => {
  test("lists the hosts in their order with each weigher's weight, and places nothing", async () => {
    const answer = (await explain({ limit: 2 })).json();
    expect(answer).toMatchObject({ refusal: null, hosts: 6, nearest: [], host: null, cells_not_searched: [] });
    expect(answer.steps.at(-1)).toEqual({ step: "combination", left: 6, removed: [] });
    expect(answer.cells.map(({ cell, hosts }: { cell: string; hosts: number }) => [cell, hosts])).toEqual([
      ["north", 3],
      ["south", 3],
    ]);
    expect(answer.ranked).toHaveLength(2);
    expect(answer.servers).toHaveLength(1);
    expect(answer.servers[0].alternates).toHaveLength(2);
    expect(rig.toldSchedulers).toEqual([]);
    expect((await rig.get("/v2.1/servers")).json().servers).toEqual([]);
  });

  test("tells for every step whether it would exclude a given host", async () => {
    await rig.put(`/berth/v1/hosts/${hostName(1)}`, { disabled: true });
    const { host } = (await explain({ host: hostName(1) })).json();
    expect(host).toMatchObject({ cell: "north", host: hostName(1), lacks: [] });
    expect(host.steps[0]).toEqual({ step: "host", why: "disabled" });
    expect((await explain({ host: "nobody" })).json().host).toBeNull();
  });

  test("judges hints and zones as those of a real request", async () => {
    const uuid = await rig.bootActive("north", 2);
    const near = (await explain({ hints: { same_host: uuid } })).json();
    expect(near.servers).toEqual([{ cell: "north", host: hostName(2), alternates: [] }]);
    const nowhere = (await explain({ zone: "no-such-zone", host: hostName(0) })).json();
    expect(nowhere.servers).toEqual([]);
    expect(nowhere.nearest).toHaveLength(5);
    expect(nowhere.host.steps.some(({ why }: { why: string | null }) => why !== null)).toBe(true);
  });

  test("has as many alternates as are asked for, and accepts the same images as a real request", async () => {
    const alternatesOf = async (body: object) => (await explain(body)).json().servers[0].alternates.length;
    expect([await alternatesOf({}), await alternatesOf({ alternates: 0 })]).toEqual([2, 0]);
    expect((await explain({ alternates: 20 })).statusCode).toBe(400);
    for (const imageRule of ["registered", "any"] as const) {
      const other = await ApiRig.start({ imageRule }, rig.store);
      const { statusCode } = await other.post("/berth/v1/explain", { flavor: "cpu", image: randomUUID() });
      expect(statusCode).toBe(imageRule === "any" ? 200 : 400);
      await other.close();
    }
  });

  test("lets several servers take room from each other", async () => {
    const { servers } = (await explain({ count: 50 })).json();
    expect(servers).toHaveLength(48);
    expect((await explain({ count: 50 })).json().servers).toHaveLength(48);
  });

  test("is for admins, and refuses unknown flavors, groups and fields", async () => {
    expect((await rig.post("/berth/v1/explain", { flavor: "none" })).statusCode).toBe(400);
    expect((await explain({ hints: { group: randomUUID() } })).statusCode).toBe(400);
    expect((await explain({ hints: { group: "x" } })).statusCode).toBe(400);
    expect((await explain({ count: 0 })).statusCode).toBe(400);
    expect((await explain({ no_such_field: 1 })).statusCode).toBe(400);
  });
});

describe("the explanation of an existing server", () => {
  test("is the scheduler's decision, and absent for servers without one", async () => {
    await keep(serverId(1), PLACED);
    const answer = await rig.get(`/berth/v1/decisions/${serverId(1)}`);
    expect(answer.json().decisions).toEqual([
      {
        ...{ server: serverId(1), request_id: "req-1", scheduler: "scheduler-1", at: "2023-11-14T22:13:20Z" },
        decision: PLACED,
      },
    ]);
    for (const server of [serverId(2), "no-uuid"])
      expect((await rig.get(`/berth/v1/decisions/${server}`)).statusCode).toBe(404);
  });

  test("is among the events of its create action, without host names for non-admins", async () => {
    const uuid = await rig.bootActive("north", 0);
    const [record] = await rig.store.requests([uuid]);
    await keep(uuid, PLACED, record?.spec.requestId);
    const path = `/v2.1/servers/${uuid}/os-instance-actions/${record?.spec.requestId}`;
    const answer = await rig.get(path, { "openstack-api-version": "compute 2.84" });
    const { events } = answer.json().instanceAction;
    const chosen = events.at(-1);
    expect(chosen).toMatchObject({ event: "conductor_schedule_and_build_instances", result: "Success" });
    expect(chosen.traceback).toBeNull();
    expect(chosen.details).toBe("Chosen among the hosts that fit: 3; alternates: 1; claims lost to others before: 1");
  });

  test("names the nearest misses of a refusal among the events, for admins", async () => {
    await rig.close();
    rig = await ApiRig.start({ auth: "noauth2" });
    const [spec] = [serverSpec(5, { projectId: "p" })];
    await rig.store.accept([spec]);
    await rig.store.failRequests([{ serverUuid: spec.uuid, cell: null, fault: "No valid host was found." }]);
    const lacks = [{ class: "VCPU", requested: 8, free: 2, provider: null }];
    const nearest = [{ cell: "north", host: hostName(0), why: "too little VCPU", lacks }];
    const refused = { outcome: "refused", hosts: 6, steps: [], cells: [], nearest, unseen: [], ...EFFORT } as const;
    await keep(spec.uuid, refused, spec.requestId);
    const path = `/v2.1/servers/${spec.uuid}/os-instance-actions/${spec.requestId}`;
    const asked = async (who: string) => {
      const answer = await rig.get(path, { "x-auth-token": who, "openstack-api-version": "compute 2.84" });
      return answer.json().instanceAction.events[0];
    };
    const told = "No valid host was found. Nearest: host-0 of north (VCPU: 8 asked for, 2 free).";
    expect(await asked("admin:x")).toMatchObject({ details: told, traceback: told });
    expect((await asked("bob:p")).details).toBeUndefined();
  });
});
