import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hostName } from "../../contract/cell-fixtures.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const remove = async (uuid: string) => (await rig.delete(`/v2.1/servers/${uuid}`)).statusCode;
const stateOf = async (uuid: string) => (await rig.store.requests([uuid]))[0]?.state;
const isGone = async (uuid: string) => (await rig.get(`/v2.1/servers/${uuid}`)).statusCode === 404;
const deleteTask = (cell: string) => rig.deleteTasks(cell)[0];

describe("DELETE /servers/{id}", () => {
  it("cancels a server that no scheduler has taken, so that no scheduler can assign it later", async () => {
    const uuid = await rig.boot();
    expect(await remove(uuid)).toBe(204);
    expect(await isGone(uuid)).toBe(true);
    expect(await rig.store.assignCells([{ serverUuid: uuid, from: null, to: "north" }])).toEqual([{ kind: "ended" }]);
    await eventually("the request is noted as gone", async () => (await stateOf(uuid)) === "deleted");
    expect(await remove(uuid)).toBe(404);
  });

  it("closes the cell to a server that a scheduler is about to dispatch there", async () => {
    const uuid = await rig.boot();
    await rig.store.assignCells([{ serverUuid: uuid, from: null, to: "north" }]);
    expect(await remove(uuid)).toBe(204);
    await expect(rig.dispatch(uuid, "north", [0])).rejects.toThrow("closed");
    expect(await isGone(uuid)).toBe(true);
  });

  it("fences a build and notifies the cell's conductors", async () => {
    const uuid = await rig.boot();
    const task = await rig.dispatch(uuid, "north", [0, 1]);
    const taken = await rig.take("north", task);
    expect(await remove(uuid)).toBe(204);
    expect(await rig.cell("north").store.commitActive([{ ...taken, selection: 0 }])).toEqual([{ kind: "fenced" }]);
    await eventually("the conductors were told", () => rig.cell("north").toldConductors.includes(uuid));
    expect((await rig.get(`/v2.1/servers/${uuid}`)).json().server["OS-EXT-STS:task_state"]).toBe("deleting");
  });

  it("deletes a running server, and repeating the call is harmless until it is gone", async () => {
    const uuid = await rig.bootActive("north", 0);
    expect(await remove(uuid)).toBe(204);
    expect(await remove(uuid)).toBe(204);
    const tasks = rig.deleteTasks("north");
    expect(tasks).toHaveLength(1);
    await rig.cell("north").store.commitDeleted([await rig.take("north", tasks[0]!)]);
    expect(await isGone(uuid)).toBe(true);
    expect(await remove(uuid)).toBe(404);
    await rig.tellDeleted("north", uuid);
    await eventually("the cell's word has come up", async () => (await stateOf(uuid)) === "deleted");
  });

  it("deletes a server in ERROR, whether it had a cell or not", async () => {
    const nowhere = await rig.boot();
    await rig.store.failRequests([{ serverUuid: nowhere, cell: null, fault: "No valid host was found." }]);
    expect(await remove(nowhere)).toBe(204);
    expect(await isGone(nowhere)).toBe(true);

    const failed = await rig.boot();
    const taken = await rig.take("north", await rig.dispatch(failed, "north", [0]));
    await rig.cell("north").store.commitError([{ ...taken, selection: 0, attemptReason: "no", reason: "no" }]);
    expect(await remove(failed)).toBe(204);
    expect(await isGone(failed)).toBe(true);
    await eventually("the request is noted as gone", async () => (await stateOf(failed)) === "deleted");
  });

  it("accepts the delete although the cell is dead: the request stays cancelled for the sweep", async () => {
    const uuid = await rig.bootActive("north", 0);
    rig.cell("north").dead = true;
    expect(await remove(uuid)).toBe(204);
    expect(await stateOf(uuid)).toBe("cancelled");
  });

  it("ignores a cell's report of the end of a server that no user deletes", async () => {
    const [living, deleted] = [await rig.bootActive("north", 0), await rig.bootActive("north", 0)];
    expect(await remove(deleted)).toBe(204);
    await rig.tellDeleted("north", living, deleted);
    await eventually("the other to be gone", async () => (await stateOf(deleted)) === "deleted");
    expect(await stateOf(living)).toBe("dispatched");
  });

  it("ignores another cell's report of the end of a server that is being deleted", async () => {
    const [other, own] = [await rig.bootActive("north", 0), await rig.bootActive("south", 4)];
    expect([await remove(other), await remove(own)]).toEqual([204, 204]);
    await rig.tellDeleted("south", other);
    await rig.tellDeleted("south", own);
    await eventually("south's own server to be gone", async () => (await stateOf(own)) === "deleted");
    expect(await stateOf(other)).toBe("cancelled");
  });

  it("survives an unreadable event of a cell", async () => {
    const uuid = await rig.bootActive("north", 0);
    expect(await remove(uuid)).toBe(204);
    await rig.cell("north").bus.publish("cell.north.events", new Uint8Array([255, 255, 255]));
    await rig.tellDeleted("north", "not a uuid", uuid);
    await eventually("the readable one counts", async () => (await stateOf(uuid)) === "deleted");
  });
});

describe("os-instance-actions", () => {
  const LATEST = { "openstack-api-version": "compute latest" };

  it("shows every attempt of a build with its host and reason, newest first", async () => {
    const created = await rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1" } });
    const uuid = created.json().server.id;
    const requestId = String(created.headers["x-openstack-request-id"]);
    const taken = await rig.hop("north", await rig.dispatch(uuid, "north", [0, 1]), 1, "disk is full");
    await rig.cell("north").store.commitActive([{ ...taken, selection: 1 }]);

    const list = (await rig.get(`/v2.1/servers/${uuid}/os-instance-actions`, LATEST)).json();
    expect(list.instanceActions).toEqual([
      {
        action: "create",
        instance_uuid: uuid,
        request_id: requestId,
        user_id: "admin",
        project_id: "default",
        start_time: expect.any(String),
        updated_at: expect.any(String),
        message: null,
      },
    ]);
    const { instanceAction } = (await rig.get(`/v2.1/servers/${uuid}/os-instance-actions/${requestId}`, LATEST)).json();
    expect(instanceAction.events).toMatchObject([
      { event: "compute__do_build_and_run_instance", host: hostName(1), result: "Success", details: null },
      {
        event: "compute__do_build_and_run_instance",
        host: hostName(0),
        result: "Error",
        details: "disk is full",
        traceback: "disk is full",
      },
    ]);
    expect(instanceAction.events[0].hostId).not.toBe(instanceAction.events[1].hostId);
  });

  it("shows the reasons for a request that found no host", async () => {
    const uuid = await rig.boot();
    const fault = "No valid host was found. 6 hosts: no room for VCPU";
    await rig.store.failRequests([{ serverUuid: uuid, cell: null, fault }]);
    const [action] = (await rig.get(`/v2.1/servers/${uuid}/os-instance-actions`)).json().instanceActions;
    expect(action).toMatchObject({ action: "create", message: "Error" });
    const detail = (await rig.get(`/v2.1/servers/${uuid}/os-instance-actions/${action.request_id}`, LATEST)).json();
    expect(detail.instanceAction.events).toMatchObject([
      { event: "conductor_schedule_and_build_instances", result: "Error", details: fault, host: null },
    ]);
  });

  it("shows the delete under the id of the call that requested it, even when the server is gone", async () => {
    const uuid = await rig.bootActive("north", 0);
    const deleted = await rig.delete(`/v2.1/servers/${uuid}`);
    const requestId = String(deleted.headers["x-openstack-request-id"]);
    const read = async () =>
      (await rig.get(`/v2.1/servers/${uuid}/os-instance-actions/${requestId}`, LATEST)).json().instanceAction;
    expect((await read()).events).toMatchObject([{ event: "compute_terminate_instance", result: null }]);
    await rig.cell("north").store.commitDeleted([await rig.take("north", deleteTask("north")!)]);
    expect(await read()).toMatchObject({ action: "delete", events: [{ result: "Success" }] });
    expect((await rig.get(`/v2.1/servers/${uuid}/os-instance-actions`)).statusCode).toBe(404);
  });

  it("answers 404 for an unknown action and 503 while the cell is dead", async () => {
    const uuid = await rig.bootActive("north", 0);
    expect((await rig.get(`/v2.1/servers/${uuid}/os-instance-actions/req-1`)).json()).toMatchObject({
      itemNotFound: {},
    });
    rig.cell("north").dead = true;
    const answer = await rig.get(`/v2.1/servers/${uuid}/os-instance-actions`);
    expect(answer.statusCode).toBe(503);
    expect(answer.headers["retry-after"]).toBe("1");
    expect(answer.json()).toMatchObject({ serviceUnavailable: { code: 503 } });
  });
});
