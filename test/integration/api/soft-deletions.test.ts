import { afterEach, describe, expect, test } from "vitest";
import { MemoryApiStore } from "../../../adapters/memory/api/memory-api-store.ts";
import { factsOf } from "../../../core/tasks/operation-facts.ts";
import { operationOf } from "../../../core/tasks/operation-record.ts";
import { writeOf } from "../../../core/tasks/operation-writes.ts";
import { DEFAULT_API_SETTINGS } from "../../../services/api/settings.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
afterEach(() => rig.close());

const HOUR_MS = 3_600_000;
const as = (token: string) => ({ "x-auth-token": token, "openstack-api-version": "compute 2.96" });
const OWNER = as("dora:p");
const ADMIN = as("admin:ops");

const start = async (over: Partial<typeof DEFAULT_API_SETTINGS> = {}) => {
  rig = await ApiRig.start({ auth: "noauth2", reclaimInstanceIntervalMs: HOUR_MS, ...over });
};
const boot = async (): Promise<string> => {
  const id = await rig.boot({ networks: "none" }, OWNER);
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const shown = async (id: string) => (await rig.get(`/v2.1/servers/${id}`, OWNER)).json().server;
const stateOf = async (id: string) => {
  const server = await shown(id);
  return [server.status, server["OS-EXT-STS:task_state"], server["OS-EXT-STS:vm_state"]];
};
const act = (id: string, action: string, headers = OWNER) =>
  rig.post(`/v2.1/servers/${id}/action`, { [action]: null }, headers);
const listed = async (query = "", headers = OWNER): Promise<string[]> => {
  const { servers } = (await rig.get(`/v2.1/servers?${query}`, headers)).json();
  return servers.map(({ id }: { id: string }) => id);
};
const openOperations = () =>
  rig
    .cell("north")
    .store.tasks()
    .filter(({ outcome, task: { work } }) => outcome === null && work?.$case === "operate");

/** Acts as a conductor: carries out the operation that is open. */
async function carryOut(): Promise<string> {
  const [record] = openOperations();
  if (record === undefined) throw new Error("no operation is open");
  const { task } = record;
  const taken = await rig.take("north", task);
  const from = { stage: "powering", selection: 0 } as const;
  const write = writeOf(factsOf(task), { from, to: "succeed", selection: 0, reason: "", noted: [], unseenMs: 0 });
  const { store } = rig.cell("north");
  expect(await store.commitStep([{ ...taken, step: 1, ...write }])).toMatchObject([{ kind: "committed" }]);
  return operationOf(task).kind;
}

/** Keeps operations from reaching the cell until the test lets each one go. `end` lets later ones through at once. */
function holdBack() {
  const { store } = rig.cell("north");
  const begin = store.begin.bind(store);
  const late: (() => ReturnType<typeof begin>)[] = [];
  store.begin = (operations) =>
    new Promise((resolve) => {
      late.push(() => {
        const begun = begin(operations);
        resolve(begun);
        return begun;
      });
    });
  const end = () => {
    store.begin = begin;
  };
  return { late, end };
}

const deleted = async (): Promise<string> => {
  const id = await boot();
  expect((await rig.delete(`/v2.1/servers/${id}`, OWNER)).statusCode).toBe(204);
  expect(await carryOut()).toBe("soft-delete");
  return id;
};

describe("a server that is deleted where deleted servers are kept", () => {
  test("is stopped, and is listed only where soft_deleted or deleted is asked for by an admin", async () => {
    await start();
    const id = await boot();
    const other = await boot();
    expect((await rig.delete(`/v2.1/servers/${id}`, OWNER)).statusCode).toBe(204);
    expect(await listed()).toEqual([other]);
    expect(await stateOf(id)).toEqual(["ACTIVE", "soft-deleting", "active"]);
    expect(await carryOut()).toBe("soft-delete");
    expect(await stateOf(id)).toEqual(["SOFT_DELETED", null, "soft-delete"]);
    expect(await listed()).toEqual([other]);
    expect(await listed("status=SOFT_DELETED")).toEqual([]);
    expect(await listed("all_tenants=1&soft_deleted=true&status=SOFT_DELETED", ADMIN)).toEqual([id]);
    expect((await listed("all_tenants=1&soft_deleted=true", ADMIN)).toSorted()).toEqual([id, other].toSorted());
    expect(await listed("all_tenants=1&deleted=true", ADMIN)).toEqual([id]);
    expect(await listed("soft_deleted=true")).toEqual([other]);
    const { instanceActions } = (await rig.get(`/v2.1/servers/${id}/os-instance-actions`, OWNER)).json();
    expect(instanceActions.map(({ action }: { action: string }) => action)).toEqual(["delete", "create"]);
  });

  test("gives back its quota at once, and needs it again to be restored", async () => {
    await start({ quotas: { ...DEFAULT_API_SETTINGS.quotas, instances: 1 } });
    const id = await deleted();
    const next = await boot();
    const refused = await act(id, "restore");
    expect([refused.statusCode, refused.json().forbidden.message]).toEqual([
      403,
      "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances",
    ]);
    expect(await stateOf(id)).toEqual(["SOFT_DELETED", null, "soft-delete"]);
    await act(next, "forceDelete");
    expect((await act(id, "restore")).statusCode).toBe(202);
  });

  test("is restored, and runs and is listed again", async () => {
    await start();
    const id = await deleted();
    expect((await act(id, "restore", as("eve:q"))).statusCode).toBe(404);
    expect((await act(id, "restore")).statusCode).toBe(202);
    expect(await stateOf(id)).toEqual(["SOFT_DELETED", "restoring", "soft-delete"]);
    expect(await listed("task_state=restoring")).toEqual([id]);
    expect(await carryOut()).toBe("restore");
    expect(await stateOf(id)).toEqual(["ACTIVE", null, "active"]);
    expect(await listed()).toEqual([id]);
    expect((await act(id, "restore")).json().conflictingRequest.message).toBe(
      `Cannot 'restore' instance ${id} while it is in vm_state active`,
    );
  });

  test("takes no action but restore and forceDelete, and a second delete changes nothing", async () => {
    await start();
    const id = await deleted();
    for (const action of ["os-start", "shelve", "suspend"]) expect((await act(id, action)).statusCode).toBe(409);
    const reset = await rig.post(`/v2.1/servers/${id}/action`, { "os-resetState": { state: "active" } }, ADMIN);
    expect(reset.statusCode).toBe(409);
    expect((await rig.delete(`/v2.1/servers/${id}`, OWNER)).statusCode).toBe(204);
    expect(await stateOf(id)).toEqual(["SOFT_DELETED", null, "soft-delete"]);
    expect((await act(id, "forceDelete")).statusCode).toBe(202);
    expect((await rig.store.requests([id]))[0]).toMatchObject({ state: "cancelled" });
    expect((await act(id, "restore")).statusCode).toBe(409);
  });

  test("is deleted for good when nobody restores it in time", async () => {
    await start({ reclaimInstanceIntervalMs: 1 });
    const id = await boot();
    await rig.delete(`/v2.1/servers/${id}`, OWNER);
    await eventually("the server is deleted for good", async () => {
      const [record] = await rig.store.requests([id]);
      return record?.state === "cancelled";
    });
    expect((await rig.quotas.usage("p")).ofProject.instances).toBe(0);
  });

  test("is stopped later by any api when its cell does not answer", async () => {
    await start();
    const id = await boot();
    rig.cell("north").dead = true;
    expect((await rig.delete(`/v2.1/servers/${id}`, OWNER)).statusCode).toBe(204);
    rig.cell("north").dead = false;
    expect(await listed()).toEqual([]);
    await eventually("the cell stops it", () => openOperations().length === 1);
    expect(await carryOut()).toBe("soft-delete");
  });
});

describe("a server is deleted for good at once", () => {
  test("when deleted servers are not kept, it was never built, or it is deleted by force", async () => {
    await start({ reclaimInstanceIntervalMs: 0 });
    const id = await boot();
    await rig.delete(`/v2.1/servers/${id}`, OWNER);
    expect((await rig.store.requests([id]))[0]?.state).toBe("cancelled");
    await rig.close();
    await start();
    const forced = await boot();
    expect((await act(forced, "forceDelete")).statusCode).toBe(202);
    const unbuilt = await rig.boot({ networks: "none" }, OWNER);
    await rig.dispatch(unbuilt, "north", [0]);
    await rig.delete(`/v2.1/servers/${unbuilt}`, OWNER);
    const records = await rig.store.requests([forced, unbuilt]);
    expect(records.map(({ state }) => state)).toEqual(["cancelled", "cancelled"]);
  });
});

describe("races of soft deletions", () => {
  test("two deletes at once delete the server softly, not for good", async () => {
    await start();
    const id = await boot();
    const answers = await Promise.all([1, 2].map(() => rig.delete(`/v2.1/servers/${id}`, OWNER)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([204, 204]);
    expect((await rig.store.requests([id]))[0]).toMatchObject({ state: "dispatched", softlyDeleted: true });
    expect(await carryOut()).toBe("soft-delete");
    expect((await act(id, "restore")).statusCode).toBe(202);
  });

  test("a cell that begins to restore a server after that was given up stops it again", async () => {
    await start();
    const id = await deleted();
    const { softDeletions } = rig;
    if (softDeletions === null) throw new Error("the rig has no store of soft deletions");
    const held = holdBack();
    const restored = act(id, "restore");
    await eventually("an operation is on its way", () => held.late.length === 1);
    const deletion = await softDeletions.softDeletion(id);
    if (deletion === null) throw new Error("the server is not being restored");
    await softDeletions.abandonRestore(deletion);
    held.end();
    await held.late[0]?.();
    await restored;
    expect(await carryOut()).toBe("restore");
    await eventually("the cell stops it again", () => openOperations().length === 1);
    expect(await carryOut()).toBe("soft-delete");
    await eventually("the deletion is settled again", () => softDeletions.unsettled().length === 0);
    expect(await stateOf(id)).toEqual(["SOFT_DELETED", null, "soft-delete"]);
  });

  test("an api that deletes softly for a former aim does not stop a server that was restored meanwhile", async () => {
    await start();
    expect(rig.store).toBeInstanceOf(MemoryApiStore);
    const id = await boot();
    // The api that stores the deletion is slow: its operation reaches the cell after the server was restored.
    const held = holdBack();
    const deleting = rig.delete(`/v2.1/servers/${id}`, OWNER);
    await eventually("an operation is on its way", () => held.late.length === 1);
    held.end();
    expect((await act(id, "restore")).statusCode).toBe(202);
    await eventually("the restoring is settled", async () => (await rig.softDeletions?.softDeletion(id)) === null);
    await held.late[0]?.();
    expect((await deleting).statusCode).toBe(204);
    expect(openOperations()).toEqual([]);
    expect(await stateOf(id)).toEqual(["ACTIVE", null, "active"]);
  });

  test("a delete while the cell restores the server stops it again", async () => {
    await start();
    const id = await deleted();
    await act(id, "restore");
    expect((await rig.delete(`/v2.1/servers/${id}`, OWNER)).statusCode).toBe(204);
    expect(await carryOut()).toBe("restore");
    await eventually("the cell stops it again", () => openOperations().length === 1);
    expect(await carryOut()).toBe("soft-delete");
    expect(await stateOf(id)).toEqual(["SOFT_DELETED", null, "soft-delete"]);
    expect(await listed()).toEqual([]);
  });
});
