import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ShownLife } from "../../../cli/operators/life-answer.ts";
import { lifeText } from "../../../cli/operators/print-life.ts";
import { conductorId, goneFrom, hostName, providerOf, serverSpec } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

const HEADERS = { "openstack-api-version": "compute 2.90" };

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

const lifeOf = async (server: string): Promise<ShownLife> => (await rig.get(`/berth/v1/explain/${server}`)).json();

describe("the whole life of a server", () => {
  test("says that no scheduler has placed the server, as long as none has", async () => {
    const life = await lifeOf(await rig.boot());
    expect(life).toMatchObject({ cell: null, state: null, tasks: [], request: { state: "accepted" } });
    expect(life.waits).toEqual(["No scheduler has placed the server yet."]);
    expect(lifeText(life)).toContain("its request is accepted, in no cell");
  });

  test("shows a hop during the build, and the wait when the host falls silent", async () => {
    const uuid = await rig.boot();
    await rig.hop("north", await rig.dispatch(uuid, "north", [0, 1]), 1, "disk full");
    const life = await lifeOf(uuid);
    expect(life.tasks[0]?.attempts).toMatchObject([
      { host: hostName(0), result: "failed", reason: "disk full", conductors: ["conductor"] },
      { host: hostName(1), result: null, ended_at: null, conductors: ["conductor"] },
    ]);
    const claimOn = (host: number) => [{ provider: providerOf(host), class: "VCPU", amount: 1 }];
    expect(life.tasks[0]?.hops).toMatchObject([
      {
        ...{ from: hostName(0), to: hostName(1), reason: "disk full" },
        ...{ gave_back: claimOn(0), claimed: claimOn(1) },
      },
    ]);
    expect([life.state?.host, life.waits]).toEqual([hostName(1), []]);
    await rig.cell("north").store.expireAgents(0);
    const silent = await lifeOf(uuid);
    expect(silent.hosts).toMatchObject([{ name: hostName(1), up: false, forced_down: false }]);
    expect(silent.waits).toEqual([
      expect.stringMatching(/^host-1 is silent; it was last heard at .*: the build waits for it\.$/),
    ]);
    expect(lifeText(silent)).toContain("Awaited now:\n- host-1 is silent");
  });

  test("names every conductor that carried an attempt", async () => {
    const uuid = await rig.boot();
    const task = await rig.dispatch(uuid, "north", [0]);
    await rig.take("north", task);
    const { store } = rig.cell("north");
    await store.giveUpLease(conductorId(1));
    await store.renewLease({ id: conductorId(2), name: "second", leaseMs: 3_600_000 });
    const [taken] = await store.takeTasks(conductorId(2), [task.id]);
    if (taken === undefined) throw new Error("the task was not taken");
    const claim = { taskId: task.id, serverUuid: uuid, epoch: taken.epoch };
    await store.commitActive([{ ...claim, selection: 0 }]);
    const [build] = (await lifeOf(uuid)).tasks;
    expect(build?.conductors.map(({ name }) => name)).toEqual(["conductor", "second"]);
    expect(build?.attempts[0]?.conductors).toContain("second");
  });

  test("shows who requested a move that waits for a host, and a stop that waits for a conductor", async () => {
    const [moving, stopping] = [await rig.bootActive("north", 0), await rig.bootActive("north", 1)];
    await rig.post(
      `/v2.1/servers/${moving}/action`,
      { "os-migrateLive": { host: null, block_migration: "auto" } },
      HEADERS,
    );
    await rig.post(`/v2.1/servers/${stopping}/action`, { "os-stop": null }, HEADERS);
    const moved = await lifeOf(moving);
    expect(moved.requested_moves).toMatchObject([
      { kind: "live-migrate", state: "accepted", asked_by: { request_id: expect.stringMatching(/^req-/) } },
    ]);
    expect(moved.waits).toEqual(["The live-migrate waits for a scheduler to find a host."]);
    const stopped = await lifeOf(stopping);
    expect(stopped.tasks.at(-1)).toMatchObject({
      ...{ kind: "stop", outcome: null, stage: "powering" },
      asked_by: { request_id: expect.stringMatching(/^req-/), user_id: stopped.request?.asked_by.user_id },
    });
    expect(stopped.waits).toEqual(["The stop waits for a conductor to take it."]);
  });

  test("in a cell that does not answer shows what the API database knows, and names what is missing", async () => {
    const uuid = await rig.bootActive("north", 0);
    rig.cell("north").dead = true;
    const life = await lifeOf(uuid);
    expect(life).toMatchObject({ cell: "north", state: null, tasks: [], request: { state: "dispatched" } });
    expect(life.missing).toContainEqual(
      expect.stringMatching(/^Cell north, where the server lives or lived, does not answer/),
    );
    expect(lifeText(life)).toContain("Not known:\n- Cell north");
  });

  test("shows the reason for a refused server", async () => {
    const spec = serverSpec(7);
    await rig.store.accept([spec]);
    await rig.store.failRequests([{ serverUuid: spec.uuid, cell: null, fault: "No valid host was found." }]);
    const life = await lifeOf(spec.uuid);
    expect(life.request).toMatchObject({ state: "failed", fault: "No valid host was found." });
    expect(lifeText(life)).toContain("ended in ERROR: No valid host was found.");
  });

  test("shows everything that is still stored of a deleted server, and says when the cell was archived", async () => {
    const uuid = await rig.bootActive("north", 0);
    await rig.delete(`/v2.1/servers/${uuid}`);
    const [task] = rig.deleteTasks("north");
    if (task === undefined) throw new Error("no delete task was stored");
    await rig.cell("north").store.commitDeleted([await rig.take("north", task)]);
    await rig.store.markDeleted(goneFrom("north", [uuid]));
    const life = await lifeOf(uuid);
    expect(life.state).toMatchObject({ status: "DELETED", deleted_at: expect.any(String) });
    expect(life.tasks.map(({ kind }) => kind)).toEqual(["build", "delete"]);
    expect(life.tasks[1]?.asked_by?.request_id).toBe(life.deletion?.request_id);

    const archived = serverSpec(8);
    await rig.store.accept([archived]);
    await rig.store.assignCells([{ serverUuid: archived.uuid, from: null, to: "north" }]);
    await rig.store.cancel(archived.uuid, "req-gone");
    await rig.store.markDeleted(goneFrom("north", [archived.uuid]));
    const rest = await lifeOf(archived.uuid);
    expect(rest).toMatchObject({ state: null, deletion: { request_id: "req-gone" } });
    expect(rest.missing).toContainEqual(expect.stringMatching(/Cell north has no records of the server.*archived/));
  });

  test("is shown for a server that only its cell still has, and says that its request was archived", async () => {
    const uuid = await rig.bootActive("south", 3);
    // The state after an archive of only the API database.
    const requests = rig.store.requests.bind(rig.store);
    rig.store.requests = async (uuids) => requests(uuids.filter((one) => one !== uuid));
    const life = await lifeOf(uuid);
    expect(life).toMatchObject({ request: null, cell: "south", state: { status: "ACTIVE", host: hostName(3) } });
    expect(life.tasks).toMatchObject([{ kind: "build", outcome: "success" }]);
    expect(life.missing).toContainEqual(
      "The server's request is not in the API database: it was archived (berth db archive).",
    );
  });

  test("is refused for an unknown server, with the names of cells that may know more", async () => {
    for (const server of [randomUUID(), "no-uuid"])
      expect((await rig.get(`/berth/v1/explain/${server}`)).statusCode).toBe(404);
    rig.cell("south").dead = true;
    const { statusCode, body } = await rig.get(`/berth/v1/explain/${randomUUID()}`);
    expect([statusCode, body]).toEqual([404, expect.stringContaining("Cell south does not answer and may know more.")]);
  });
});

test("is for admins only, even for a server of the caller's own project", async () => {
  const strict = await ApiRig.start({ auth: "noauth2" });
  try {
    const uuid = await strict.boot({}, { "x-auth-token": "bob:p" });
    const asked = async (headers: Record<string, string>) =>
      (await strict.get(`/berth/v1/explain/${uuid}`, headers)).statusCode;
    expect(await asked({ "x-auth-token": "bob:p" })).toBe(403);
    expect(await asked({})).toBe(401);
    expect(await asked({ "x-auth-token": "admin:x" })).toBe(200);
  } finally {
    await strict.close();
  }
});
