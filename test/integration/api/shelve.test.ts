import { afterEach, expect, test } from "vitest";
import type { ApiSettings } from "../../../services/api/settings.ts";
import { volumeOf } from "../../rigs/begin-operation.ts";
import { OperationByHand } from "../../rigs/operation-by-hand.ts";
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
/** Acts as the conductor and the host that carry the open operation out. */
const finish = async () => {
  const { store } = rig.cell("north");
  const open = store.tasks().find(({ kind, outcome }) => kind === "operate" && outcome === null);
  await new OperationByHand(store, open?.id ?? "").goOn("succeed");
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

test("only a shelved server is offloaded by an admin, whatever else it may be", async () => {
  const id = await active();
  const { store } = rig.cell("north");
  const refusal = async () => {
    const answer = await act(id, "shelveOffload", "admin");
    return [answer.statusCode, answer.json().conflictingRequest?.message];
  };
  const inState = (vmState: string) => [
    409,
    `Cannot 'shelveOffload' instance ${id} while it is in vm_state ${vmState}`,
  ];
  expect(await refusal()).toEqual(inState("active"));
  for (const [action, vmState] of [
    ["os-stop", "stopped"],
    ["os-start", "active"],
    ["pause", "paused"],
  ] as const) {
    expect((await act(id, action)).statusCode).toBe(202);
    await finish();
    expect(await refusal()).toEqual(inState(vmState));
  }
  expect((await act(id, "shelve")).statusCode).toBe(202);
  await finish();
  const [before] = await store.servers([id]);
  expect(before).toMatchObject({ status: "SHELVED", host: expect.any(String) });
  expect((await act(id, "shelveOffload", "admin")).statusCode).toBe(202);
  expect(operations()).toContain("shelve-to-image");
});

test.each([
  ["is offloaded", "shelveOffload", "SHELVED", "ACTIVE", "active", -1],
  ["is shelved and offloaded at once", "shelve", "ACTIVE", "SHELVED", "shelved", 0],
] as const)(
  "a server that %s is refused when another call changes its status first",
  async (_what, action, from, to, vmState, shelvedOffloadTime) => {
    const id = await active({ shelvedOffloadTime });
    const { store } = rig.cell("north");
    const [server] = await store.servers([id]);
    const servers = store.servers.bind(store);
    // The api finds the server in the former status. Another call has ended by the time the operation is planned.
    let looks = 0;
    store.servers = async (uuids) => {
      looks += 1;
      return (await servers(uuids)).map((one) => ({ ...one, status: looks === 1 ? from : to }));
    };
    const answer = await act(id, action, "admin");
    expect([answer.statusCode, answer.json().conflictingRequest?.message]).toEqual([
      409,
      `Cannot '${action}' instance ${id} while it is in vm_state ${vmState}`,
    ]);
    expect(looks).toBeGreaterThan(1);
    expect(operations()).toEqual([]);
    // No image is left of it.
    expect(
      (await rig.get("/image/v2/images", as("admin")))
        .json()
        .images.filter((one: { name: string }) => one.name.endsWith("-shelved")),
    ).toEqual([]);
    expect(server?.host).not.toBeNull();
  },
);

test("a server that is shelved keeps its host by default", async () => {
  const id = await active();
  expect((await act(id, "shelve", "eve:q")).statusCode).toBe(404);
  expect((await act(id, "shelve")).statusCode).toBe(202);
  expect(operations()).toEqual(["shelve"]);
  expect(await actionsOf(id)).toEqual(["shelve", "create"]);
});

test.each([
  ["shelve", OWNER, 0],
  ["shelveOffload", "admin", -1],
] as const)(
  "%s: a server keeps its host while that alone knows which of two volumes the guest uses",
  async (action, token, shelvedOffloadTime) => {
    const id = await active({ shelvedOffloadTime });
    if (action === "shelveOffload") {
      expect((await act(id, "shelve")).statusCode).toBe(202);
      await finish();
    }
    const begun = operations();
    const { store } = rig.cell("north");
    const [server] = await store.servers([id]);
    const volumes = [{ ...volumeOf(1), replacedBy: volumeOf(2).volumeId }];
    const patch = { serverUuid: id, revision: server!.revision, change: { steps: [] } };
    expect(await store.patchHoldings([{ ...patch, spec: { ...server!.spec, volumes } }])).toMatchObject([
      { kind: "patched" },
    ]);
    const refused = await act(id, action, token);
    expect([refused.statusCode, refused.json().conflictingRequest?.message]).toEqual([
      409,
      expect.stringContaining(
        `whether its guest uses volume ${volumeOf(1).volumeId} or volume ${volumeOf(2).volumeId}`,
      ),
    ]);
    expect(operations()).toEqual(begun);
  },
);
