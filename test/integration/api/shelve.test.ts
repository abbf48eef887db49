import { afterEach, expect, test } from "vitest";
import type { ApiSettings } from "../../../services/api/settings.ts";
import { volumeOf } from "../../rigs/begin-operation.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
afterEach(() => rig.close());

const OWNER = "dora:p";
const as = (token: string) => ({ "x-auth-token": token, "openstack-api-version": "compute 2.96" });
const act = (id: string, action: string, token = OWNER) =>
  rig.post(`/v2.1/servers/${id}/action`, { [action]: null }, as(token));
const active = async (settings: Partial<ApiSettings> = {}): Promise<string> => {
  rig = await ApiRig.start({ auth: "noauth2", ...settings });
  const server = { name: "web", flavorRef: "1", networks: "none" };
  const { id } = (await rig.post("/v2.1/servers", { server }, as(OWNER))).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const operations = () =>
  rig
    .cell("north")
    .store.tasks()
    .flatMap(({ task: { work } }) => (work?.$case === "operate" ? [work.value.kind] : []));
const actionsOf = async (id: string) => {
  const { instanceActions } = (await rig.get(`/v2.1/servers/${id}/os-instance-actions`, as(OWNER))).json();
  return instanceActions.map(({ action }: { action: string }) => action);
};

test("a member's server that is shelved is offloaded in the same operation when the setting says so", async () => {
  const id = await active({ shelvedOffloadTime: 0 });
  expect((await act(id, "shelve")).statusCode).toBe(202);
  expect(operations()).toEqual(["shelve-to-image"]);
  expect((await rig.get(`/v2.1/servers/${id}`, as(OWNER))).json().server["OS-EXT-STS:task_state"]).toBe("shelving");
  expect(await actionsOf(id)).toEqual(["shelve", "create"]);
  const again = await act(id, "shelve");
  expect([again.statusCode, again.json().conflictingRequest.message]).toEqual([
    409,
    `Cannot 'shelve' instance ${id} while it is in task_state shelving`,
  ]);
  expect((await act(id, "shelveOffload")).statusCode).toBe(403);
});

test("a server that is shelved keeps its host by default", async () => {
  const id = await active();
  expect((await act(id, "shelve", "eve:q")).statusCode).toBe(404);
  expect((await act(id, "shelve")).statusCode).toBe(202);
  expect(operations()).toEqual(["shelve"]);
  expect(await actionsOf(id)).toEqual(["shelve", "create"]);
});

test("a server keeps its host while that alone knows which of two volumes the guest uses", async () => {
  const id = await active({ shelvedOffloadTime: 0 });
  const { store } = rig.cell("north");
  const [server] = await store.servers([id]);
  const volumes = [{ ...volumeOf(1), replacedBy: volumeOf(2).volumeId }];
  const patch = { serverUuid: id, revision: server!.revision, change: { steps: [] } };
  expect(await store.patchHoldings([{ ...patch, spec: { ...server!.spec, volumes } }])).toMatchObject([
    { kind: "patched" },
  ]);
  for (const [action, token] of [
    ["shelve", OWNER],
    ["shelveOffload", "admin"],
  ] as const) {
    const refused = await act(id, action, token);
    expect([refused.statusCode, refused.json().conflictingRequest?.message]).toEqual([
      409,
      expect.stringContaining(
        `whether its guest uses volume ${volumeOf(1).volumeId} or volume ${volumeOf(2).volumeId}`,
      ),
    ]);
  }
  expect(operations()).toEqual([]);
});
