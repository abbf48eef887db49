import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { attemptIdOf } from "../../../core/tasks/server.ts";
import { beginOperationOn } from "../../rigs/begin-operation.ts";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor = 96) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterEach(() => rig.close());
const tell = (events: unknown, headers = as("admin:ops")) =>
  rig.post("/v2.1/os-server-external-events", { events }, headers);
const boot = async () => {
  const server = { name: "web", flavorRef: "1", networks: "none" };
  return (await rig.post("/v2.1/servers", { server }, as("ann:p1"))).json().server.id as string;
};
const activeServer = async () => {
  const id = await boot();
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const PORT = "11111111-1111-4111-8111-111111111111";
const OTHER_PORT = "2222222a-2222-4222-8222-222222222222";

describe("/os-server-external-events", () => {
  it("takes events of servers on hosts", async () => {
    const server_uuid = await activeServer();
    const plugged = { name: "network-vif-plugged", server_uuid, tag: PORT, status: "completed" };
    const answer = await tell([plugged, { name: "network-changed", server_uuid }]);
    expect(answer.statusCode, answer.body).toBe(200);
    expect(answer.json()).toEqual({
      events: [
        { ...plugged, code: 200 },
        { name: "network-changed", server_uuid, status: "completed", code: 200 },
      ],
    });
  });

  it("answers each event with a code of its own", async () => {
    const [active, waiting, gone] = [await activeServer(), await boot(), await boot()];
    await rig.delete(`/v2.1/servers/${gone}`, as("ann:p1"));
    const answer = await tell([
      { name: "network-changed", server_uuid: active },
      { name: "volume-extended", server_uuid: active },
      { name: "network-changed", server_uuid: waiting },
      { name: "network-changed", server_uuid: gone },
      { name: "network-changed", server_uuid: PORT },
    ]);
    expect(answer.statusCode).toBe(207);
    expect(answer.json().events.map((event: { code: number; status: string }) => [event.code, event.status])).toEqual([
      ...[
        [200, "completed"],
        [400, "failed"],
        [422, "failed"],
        [404, "failed"],
        [404, "failed"],
      ],
    ]);
  });

  it("notes ports that are connected at the destination of a live migration for the conductor that waits, and no others", async () => {
    const { store } = rig.cell("north");
    const [moving, resting] = [await activeServer(), await activeServer()];
    const taskId = randomUUID();
    const { outcome } = await beginOperationOn(store, {
      server: 0,
      uuid: moving,
      kind: "live-migrate",
      hosts: [1],
      taskId,
    });
    expect(outcome.kind).toBe("begun");
    const noted: unknown[] = [];
    const { notePlugged } = store;
    store.notePlugged = (events) => {
      noted.push(...events);
      return notePlugged.call(store, events);
    };
    const plugged = (server_uuid: string, more = {}) => ({
      name: "network-vif-plugged",
      server_uuid,
      tag: PORT,
      ...more,
    });
    const events = [
      plugged(resting),
      plugged(moving, { tag: "no port" }),
      { name: "network-vif-unplugged", server_uuid: moving, tag: PORT },
      plugged(moving, { tag: OTHER_PORT.toUpperCase(), status: "failed" }),
      plugged(moving, { server_uuid: moving.toUpperCase() }),
    ];
    expect((await tell(events)).statusCode).toBe(200);
    expect(await store.pluggedPorts([attemptIdOf(taskId, 0)])).toEqual([
      [
        { portId: PORT, isFailed: false },
        { portId: OTHER_PORT, isFailed: true },
      ],
    ]);
    expect(noted).toHaveLength(2);
    store.notePlugged = () => Promise.reject(new Error("the connection was lost"));
    expect((await tell([plugged(moving)])).statusCode).toBe(503);
  });

  it("notes in its cell that Cinder has filled the boot volume of a server that is rebuilt", async () => {
    const { store } = rig.cell("north");
    const [rebuilt, resting, taskId] = [await activeServer(), await activeServer(), randomUUID()];
    await beginOperationOn(store, { server: 0, uuid: rebuilt, kind: "reimage", hosts: [0], taskId });
    const reimaged = (server_uuid: string) => ({ name: "volume-reimaged", server_uuid, tag: PORT });
    const { statusCode } = await tell([reimaged(resting), reimaged(rebuilt)], as("admin:ops", 93));
    expect(statusCode).toBe(200);
    expect(await store.pluggedPorts([attemptIdOf(taskId, 0)])).toEqual([[{ portId: PORT, isFailed: false }]]);
  });

  it("takes the events about servers of other cells when a cell does not answer, since Neutron does not repeat them", async () => {
    const { store } = rig.cell("north");
    const [moving, other, taskId] = [await activeServer(), await boot(), randomUUID()];
    const task = await rig.dispatch(other, "south", [3]);
    await rig.cell("south").store.commitActive([{ ...(await rig.take("south", task)), selection: 0 }]);
    await beginOperationOn(store, { server: 0, uuid: moving, kind: "live-migrate", hosts: [1], taskId });
    rig.cell("south").dead = true;
    const plugged = (server_uuid: string) => ({ name: "network-vif-plugged", server_uuid, tag: PORT });
    const answer = await tell([plugged(other), plugged(moving)]);
    expect([answer.statusCode, answer.body]).toEqual([503, expect.stringContaining("south")]);
    const noted = [[{ portId: PORT, isFailed: false }]];
    expect(await store.pluggedPorts([attemptIdOf(taskId, 0)])).toEqual(noted);
  });

  it("asks the sender to try again when the server's cell does not answer", async () => {
    const server_uuid = await activeServer();
    rig.cell("north").dead = true;
    expect((await tell([{ name: "network-changed", server_uuid }])).statusCode).toBe(503);
  });

  it.each([
    ["volume-extended", 51],
    ["power-update", 76],
    ["accelerator-request-bound", 82],
    ["volume-reimaged", 93],
  ])("takes %s from 2.%i on", async (name, minor) => {
    const event = { name, server_uuid: await activeServer(), tag: "POWER_ON" };
    expect((await tell([event], as("admin:ops", minor - 1))).statusCode).toBe(400);
    expect((await tell([event], as("admin:ops", minor))).statusCode).toBe(200);
  });

  it("refuses malformed events, and callers who are not admins", async () => {
    const event = { name: "network-changed", server_uuid: await activeServer() };
    for (const wrong of [[], [{ ...event, name: "x" }], [{ ...event, server_uuid: "x" }], [{ ...event, status: "x" }]])
      expect((await tell(wrong)).statusCode).toBe(400);
    expect((await tell([event], as("ann:p1"))).json().forbidden.message).toBe(
      "Policy doesn't allow os_compute_api:os-server-external-events:create to be performed.",
    );
    expect((await tell([event], as("bob:p2"))).statusCode).toBe(403);
  });
});
