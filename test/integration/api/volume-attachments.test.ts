import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { leftoverUuid } from "../../../core/tasks/move-change.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { beginOperationOn } from "../../rigs/begin-operation.ts";
import { eventually } from "../../rigs/eventually.ts";
import { OperationByHand } from "../../rigs/operation-by-hand.ts";
import { ApiRig } from "./api-rig.ts";
import { ADMIN, as, attachmentCalls } from "./attachment-calls.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" });
});
afterEach(() => rig.close());

const {
  call,
  newVolume,
  volume,
  statusOf,
  pathOf,
  attach,
  detach,
  show,
  active,
  north,
  openTask,
  finish,
  attached,
  settler,
} = attachmentCalls(() => rig);

test("a volume is attached, shown everywhere, and detached", async () => {
  const [server, id] = [await active(), await newVolume()];
  const answer = await attach(server, id, { tag: "t", delete_on_termination: true });
  const view = { id, volumeId: id, serverId: server, device: "/dev/vdb", tag: "t", delete_on_termination: true };
  expect(answer).toEqual({ status: 200, json: { volumeAttachment: view } });
  expect(await statusOf(id)).toBe("attaching");
  expect(await show(server)).toMatchObject({
    ...{ "OS-EXT-STS:task_state": null, "os-extended-volumes:volumes_attached": [{ id, delete_on_termination: true }] },
  });
  expect((await show(server, 1))["os-extended-volumes:volumes_attached"]).toEqual([{ id }]);
  expect(openTask(server)?.work).toMatchObject({
    value: { kind: "attach-volume", volume: { volumeId: id, device: "/dev/vdb", tag: "t", sizeBytes: 2 ** 31 } },
  });
  await finish(server, "succeed");
  await settler(600_000).settle();
  expect(await statusOf(id)).toBe("in-use");
  const { attachments } = await volume(id);
  expect(attachments).toMatchObject([{ volume_id: id, server_id: server, device: "/dev/vdb" }]);
  const { id: _, ...rest } = view;
  const ids = { attachment_id: attachments[0].attachment_id, bdm_uuid: expect.any(String) };
  const listed = await call("GET", pathOf(server));
  expect(listed).toEqual({ status: 200, json: { volumeAttachments: [{ ...rest, ...ids }] } });
  expect((await call("GET", pathOf(server, id))).json.volumeAttachment).toEqual(listed.json.volumeAttachments[0]);
  expect((await call("GET", pathOf(server, id), undefined, ADMIN, 88)).json.volumeAttachment).toEqual(view);
  expect((await call("GET", pathOf(server, id), undefined, ADMIN, 1)).json.volumeAttachment).toEqual({
    ...{ id, volumeId: id, serverId: server, device: "/dev/vdb" },
  });
  expect((await call("GET", `${pathOf(server)}?limit=0`)).json.volumeAttachments).toEqual([]);
  expect((await call("GET", `${pathOf(server)}?x=1`)).status).toBe(400);
  const actions = (await call("GET", `/v2.1/servers/${server}/os-instance-actions`)).json.instanceActions;
  expect(actions.map(({ action }: { action: string }) => action)).toContain("attach_volume");
  expect((await call("DELETE", `/volume/v3/volumes/${id}`)).status).toBe(400);

  expect(await detach(server, id)).toEqual({ status: 202, json: null });
  expect([await statusOf(id), (await show(server))["OS-EXT-STS:task_state"]]).toEqual(["detaching", null]);
  await finish(server, "succeed");
  await settler(600_000).settle();
  expect(await statusOf(id)).toBe("available");
  expect((await call("GET", pathOf(server))).json).toEqual({ volumeAttachments: [] });
  expect((await call("DELETE", `/volume/v3/volumes/${id}`)).status).toBe(202);
});

test("from 2.101 on, attaching has no body in its answer", async () => {
  const [server, id] = [await active(), await newVolume()];
  expect(await attach(server, id, {}, 101)).toEqual({ status: 202, json: null });
});

test("a host that cannot connect a volume leaves it free, and one that cannot disconnect it leaves it attached", async () => {
  const [server, id] = [await active(), await newVolume()];
  await attach(server, id);
  await finish(server, "undoing", "give-up");
  await settler(600_000).settle();
  expect(await statusOf(id)).toBe("available");
  await attached(server, id);
  expect((await detach(server, id)).status).toBe(202);
  await finish(server, "give-up");
  await settler(600_000).settle();
  expect(await statusOf(id)).toBe("in-use");
});

test("a server whose move waits for its confirmation gets and loses volumes, on both hosts of the move", async () => {
  const [server, id] = [await active(), await newVolume()];
  for (const settled of ["succeed", "give-up"] as const) {
    const { task: moving } = await beginOperationOn(north(), { server: 0, uuid: server, kind: "migrate", hosts: [1] });
    const move = new OperationByHand(north(), moving?.id ?? "");
    for (const to of ["handing-over", "starting", "succeed"] as const) await move.goOn(to);
    expect((await attach(server, id)).status).toBe(200);
    const operation = { kind: "attach-volume-unconfirmed", statusBefore: "VERIFY_RESIZE" };
    const [source, destination] = [{ host: hostName(0) }, { host: hostName(1) }];
    expect(openTask(server)?.work).toMatchObject({ value: { ...operation, source, destination } });
    await finish(server, "attaching-kept", "succeed");
    await settler(600_000).settle();
    expect([await statusOf(id), (await show(server)).status]).toEqual(["in-use", "VERIFY_RESIZE"]);
    expect((await detach(server, id)).status).toBe(202);
    await finish(server, "detaching-kept", settled);
    await settler(600_000).settle();
    expect(await statusOf(id)).toBe(settled === "succeed" ? "available" : "in-use");
    const revert = await call("POST", `/v2.1/servers/${server}/action`, { revertResize: null });
    expect(revert.status).toBe(202);
    await finish(server, "retreating", "restoring", "succeed");
    const [now] = await north().servers([server]);
    expect([now?.status, now?.host, now?.spec.volumes.length]).toEqual([
      ...["ACTIVE", hostName(0)],
      settled === "succeed" ? 0 : 1,
    ]);
  }
});

test("a volume for a server whose move is confirmed at the same moment is refused with 409, and is free again", async () => {
  const [server, id] = [await active(), await newVolume()];
  const { task: moving } = await beginOperationOn(north(), { server: 0, uuid: server, kind: "migrate", hosts: [1] });
  const move = new OperationByHand(north(), moving?.id ?? "");
  for (const to of ["handing-over", "starting", "succeed"] as const) await move.goOn(to);
  const migrations = north().migrations.bind(north());
  north().migrations = async (query) => {
    north().migrations = migrations;
    expect((await call("POST", `/v2.1/servers/${server}/action`, { confirmResize: null })).status).toBe(204);
    return migrations(query);
  };
  expect((await attach(server, id)).status).toBe(409);
  expect([await statusOf(id), openTask(server)?.work]).toMatchObject(["available", { value: { kind: "confirm" } }]);
});

describe("attaching is refused", () => {
  test("with 404 for a server or a volume that does not exist or is another project's", async () => {
    const [server, id] = [await active(), await newVolume("eve:q")];
    const own = await rig.bootActive("north", 1, { networks: "none" }, as("bob:q"));
    for (const [on, what] of [
      [own, randomUUID()],
      [own, await newVolume()],
      [randomUUID(), id],
      [server, id],
    ] as const)
      expect((await attach(on, what, {}, 89, "bob:q")).status).toBe(404);
    expect((await attach(own, randomUUID(), {}, 89, "bob:q")).json.itemNotFound.message).toMatch(
      /^Volume .* could not be found\.$/,
    );
    expect(await statusOf(id)).toBe("available");
  });

  test("with 409 in a status that does not allow it, while another operation is under way, and when the server is locked", async () => {
    const [server, id] = [await active(), await newVolume()];
    const act = (action: string) => call("POST", `/v2.1/servers/${server}/action`, { [action]: null });
    await act("os-stop");
    expect((await attach(server, id)).json.conflictingRequest.message).toBe(
      `Cannot 'attach_volume' instance ${server} while it is in task_state powering-off`,
    );
    const suspended = await active(1);
    await north().resetStatus([{ serverUuid: suspended, status: "ERROR" }]);
    expect((await attach(suspended, id)).json.conflictingRequest.message).toBe(
      `Cannot 'attach_volume' instance ${suspended} while it is in vm_state error`,
    );
    expect((await detach(suspended, id)).status).toBe(404);
    const locked = await rig.bootActive("north", 2, { networks: "none" }, as("bob:q"));
    const lock = await call("POST", `/v2.1/servers/${locked}/action`, { lock: null });
    expect(lock.status).toBe(202);
    expect((await attach(locked, await newVolume("bob:q"), {}, 89, "bob:q")).status).toBe(409);
    expect(await statusOf(id)).toBe("available");
  });

  test("for a volume that a server has, and a device that is in use", async () => {
    const [server, other, id] = [await active(), await active(1), await newVolume()];
    await attached(server, id);
    for (const on of [server, other]) {
      const refused = await attach(on, id);
      expect(refused.status).toBe(400);
      expect(refused.json.badRequest.message).toBe(
        `Invalid volume: volume ${id} is already attached to instances: ${server}`,
      );
    }
    const more = await newVolume();
    for (const device of ["/dev/vda", "/dev/vdb"])
      expect(await attach(server, more, { device })).toMatchObject({
        ...{
          status: 409,
          json: { conflictingRequest: { message: `The supplied device path (${device}) is in use.` } },
        },
      });
    expect((await attach(server, more, { device: "/dev/sdx" })).json.volumeAttachment.device).toBe("/dev/sdx");
    await finish(server, "succeed");
    await settler(600_000).settle();
    expect(await statusOf(more)).toBe("in-use");
    expect((await attach(server, await newVolume())).json.volumeAttachment.device).toBe("/dev/vdc");
  });

  test.each([
    ["a tag before 2.49", { tag: "t" }, 48],
    ["delete_on_termination before 2.79", { delete_on_termination: true }, 78],
    ["a device that is none", { device: "sdb" }, 89],
    ["an unknown field", { other: 1 }, 89],
  ])("with 400 for %s", async (_what, fields, minor) => {
    const [server, id] = [await active(), await newVolume()];
    expect((await attach(server, id, fields, minor)).status).toBe(400);
    expect(await statusOf(id)).toBe("available");
  });
});

test("detaching is refused for a volume that the server does not have, or that is not attached yet", async () => {
  const [server, other, id] = [await active(), await active(1), await newVolume()];
  const missing = `Instance ${server} is not attached to volume ${id}`;
  expect((await detach(server, id)).json.itemNotFound.message).toBe(missing);
  await attached(other, id);
  expect((await detach(server, id)).json.itemNotFound.message).toBe(missing);
  expect((await call("GET", pathOf(server, id))).json.itemNotFound.message).toBe(missing);
  await rig.volumes.beginDetaching(id, { serverUuid: other, taskId: randomUUID() });
  expect((await detach(other, id)).json.badRequest.message).toBe(
    `Invalid volume: volume '${id}' status must be 'in-use'. Currently in 'detaching' status`,
  );
});

test("a volume is detached also if the settler confirms its attachment while the call looks at it", async () => {
  const [server, id] = [await active(), await newVolume()];
  await attached(server, id);
  vi.spyOn(rig.volumes, "beginDetaching").mockResolvedValueOnce(false);
  expect(await detach(server, id)).toEqual({ status: 202, json: null });
});

test("an attachment is updated from 2.85 on, and a volume is not replaced by another one", async () => {
  const [server, id, other] = [await active(), await newVolume(), await newVolume()];
  await attached(server, id, { tag: "t" });
  const put = (fields: object, minor = 85, who = ADMIN) =>
    call("PUT", pathOf(server, id), { volumeAttachment: { volumeId: id, ...fields } }, who, minor);
  const same = { id, serverId: server, device: "/dev/vdb", tag: "t" };
  expect(await put({ ...same, delete_on_termination: true })).toEqual({ status: 202, json: null });
  expect((await call("GET", pathOf(server, id))).json.volumeAttachment.delete_on_termination).toBe(true);
  for (const [field, value] of Object.entries({ id: other, serverId: other, device: "/dev/vdz", tag: "x" }))
    expect((await put({ [field]: value })).json.badRequest.message).toBe(`The ${field} property is not mutable`);
  const migrating = `volume ${id} is not migrating; this API should only be called by Cinder`;
  for (const minor of [84, 85]) {
    expect((await put({ volumeId: other }, minor)).json.conflictingRequest.message).toBe(migrating);
    expect((await put({ volumeId: other }, minor, "bob:p")).status).toBe(403);
  }
  expect((await put({ delete_on_termination: true }, 84)).status).toBe(400);
  expect((await call("PUT", pathOf(server, other), { volumeAttachment: { volumeId: other } })).status).toBe(404);
});

describe("one volume is never on two servers:", () => {
  const specsWith = async (id: string): Promise<number> => {
    const uuids = north()
      .tasks()
      .map((row) => row.serverUuid);
    const servers = await north().servers([...new Set(uuids)]);
    return servers.filter(({ spec }) => spec.volumes.some(({ volumeId }) => volumeId === id)).length;
  };

  test("two servers are asked for it at once", async () => {
    const servers = [await active(0), await active(1), await active(2)];
    for (let round = 0; round < 5; round += 1) {
      const id = await newVolume();
      const answers = await Promise.all(servers.map((server) => attach(server, id)));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400]);
      const winner = servers[answers.findIndex(({ status }) => status === 200)]!;
      await finish(winner, "succeed");
      await settler(600_000).settle();
      expect(await statusOf(id)).toBe("in-use");
      expect(await specsWith(id)).toBe(1);
    }
  });

  test("an api that has reserved it is slow, and begins after the volume was given to another server", async () => {
    const [slow, other, id] = [await active(0), await active(1), await newVolume()];
    const reserve = rig.volumes.reserve.bind(rig.volumes);
    const [held, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    rig.volumes.reserve = async (...asked) => {
      rig.volumes.reserve = reserve;
      const outcome = await reserve(...asked);
      reached.resolve();
      await held.promise;
      return outcome;
    };
    const late = attach(slow, id);
    await reached.promise;
    await settler(600_000).settle();
    expect(await statusOf(id)).toBe("attaching");
    await settler().settle();
    expect(await statusOf(id)).toBe("available");
    await attached(other, id);
    held.resolve();
    const refused = await late;
    expect([refused.status, refused.json.conflictingRequest?.message]).toEqual([
      409,
      `Cannot 'attach_volume' instance ${slow}: the call took so long that it was given up. Try again.`,
    ]);
    expect(openTask(slow)).toBeUndefined();
    expect([await statusOf(id), await specsWith(id)]).toEqual(["in-use", 1]);
    expect((await volume(id)).attachments).toMatchObject([{ server_id: other }]);
  });

  test("an api dies between the reservation and the beginning", async () => {
    const [server, other, id] = [await active(0), await active(1), await newVolume()];
    const requested = {
      ...{ serverUuid: server, cell: "north", attachmentId: randomUUID(), mappingUuid: randomUUID() },
      ...{ device: "/dev/vdb", tag: null, deleteOnTermination: false, taskId: randomUUID() },
    };
    await rig.volumes.reserve(id, requested);
    expect((await attach(other, id)).status).toBe(400);
    await settler().settle();
    expect(await north().closeTasks([requested])).toEqual(["closed"]);
    await attached(other, id);
    // The same for a detachment, after which the volume stays where it is.
    const taskId = randomUUID();
    await rig.volumes.beginDetaching(id, { serverUuid: other, taskId });
    await settler().settle();
    expect([await statusOf(id), await specsWith(id)]).toEqual(["in-use", 1]);
  });

  test("its cell does not answer", async () => {
    const [server, id] = [await active(), await newVolume()];
    rig.cell("north").dead = true;
    const other = await rig.bootActive("south", 3, { networks: "none" }, as(ADMIN));
    expect((await attach(server, id)).status).toBe(503);
    rig.cell("north").dead = false;
    expect(await statusOf(id)).toBe("available");
    await attached(server, id);
    expect((await detach(server, id)).status).toBe(202);
    rig.cell("north").dead = true;
    for (let round = 0; round < 3; round += 1) await settler().settle();
    expect([await statusOf(id), (await attach(other, id)).status]).toEqual(["detaching", 400]);
    rig.cell("north").dead = false;
  });

  test("its server is deleted while it is being attached, and the silent host may have the guest", async () => {
    const [server, other, id] = [await active(0), await active(1), await newVolume()];
    await attach(server, id, { delete_on_termination: true });
    expect((await call("DELETE", `/v2.1/servers/${server}`)).status).toBe(204);
    await settler().settle();
    expect(await statusOf(id)).toBe("attaching");
    const task = await deleteLeaving(server, ["host-0"]);
    await eventually("the sweep", async () => {
      await settler().settle();
      return (await statusOf(id)) === "detaching";
    });
    for (let round = 0; round < 3; round += 1) await settler().settle();
    expect([await statusOf(id), (await attach(other, id)).status]).toEqual(["detaching", 400]);
    expect(await north().releaseEvacuated([{ host: "host-0", remaining: [] }])).toEqual([[leftoverUuid(task)]]);
    await settler().settle();
    // It never was attached, so it does not end with the server.
    expect(await statusOf(id)).toBe("available");
  });

  test("its server was deleted: it waits for the host's word, and then ends with the server if it was to", async () => {
    const [server, kept, ended] = [await active(0), await newVolume(), await newVolume()];
    await attached(server, kept);
    await attached(server, ended, { delete_on_termination: true });
    expect((await call("DELETE", `/v2.1/servers/${server}`)).status).toBe(204);
    await deleteLeaving(server, []);
    await eventually("the volumes to end", async () => (await statusOf(kept)) === "available");
    await eventually("the volume to be deleted", async () => (await volume(ended)) === undefined);
  });

  test("its server was forgotten by a restored database, and deleted: it is kept until each host was compared", async () => {
    const restore = north().remember();
    const [server, id] = [await active(), await newVolume()];
    await attached(server, id);
    restore();
    const incarnation = await north().quarantine.renewIncarnation();
    expect((await call("DELETE", `/v2.1/servers/${server}`)).status).toBe(204);
    await eventually("the end of the server", async () => (await statusOf(id)) === "detaching");
    await settler().settle();
    expect(await statusOf(id)).toBe("detaching");
    const hosts = await north().hostAdmin().adminHosts(null);
    await north().noteCompared(hosts.map(({ name: host }) => ({ host, incarnation })));
    await settler().settle();
    expect(await statusOf(id)).toBe("available");
  });

  /** Acts as a conductor: ends the server's delete, with hosts that did not answer. */
  async function deleteLeaving(server: string, left: readonly string[]): Promise<string> {
    const task = rig.deleteTasks("north").find((one) => one.server?.uuid === server);
    if (task === undefined) throw new Error("no delete");
    const tenure = { ...(await rig.take("north", task)), left };
    expect(await north().commitDeleted([tenure])).toEqual([{ kind: "committed" }]);
    await rig.tellDeleted("north", server);
    return task.id;
  }

  test("it was detached where its server lives now, but the server has left a guest on a silent host", async () => {
    const [server, id] = [await active(), await newVolume()];
    await attached(server, id);
    rig.cell("north").store.guestsLeft = async (uuids) => uuids.map((uuid) => uuid === server);
    await detach(server, id);
    await finish(server, "succeed");
    await settler().settle();
    expect(await statusOf(id)).toBe("detaching");
  });
});
