import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { factsOf } from "../../../core/tasks/operation-facts.ts";
import { writeOf } from "../../../core/tasks/operation-writes.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", shelvedOffloadTime: 0 });
  await rig.post("/v2.1/os-aggregates", { aggregate: { name: "east", availability_zone: "east" } }, as(104));
});
afterEach(() => rig.close());

const as = (minor: number) => ({ "x-auth-token": "admin:p", "openstack-api-version": `compute 2.${minor}` });

async function active(zone?: string): Promise<string> {
  const server = {
    name: "web",
    flavorRef: "1",
    networks: "none",
    ...(zone !== undefined && { availability_zone: zone }),
  };
  const { id } = (await rig.post("/v2.1/servers", { server }, as(104))).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
}
/** Puts the host of all these servers into the zone. */
async function hostJoinsZone(): Promise<void> {
  const [aggregate] = (await rig.get("/v2.1/os-aggregates", as(104))).json().aggregates;
  const added = await rig.post(
    `/v2.1/os-aggregates/${aggregate.id}/action`,
    { add_host: { host: hostName(0) } },
    as(104),
  );
  expect(added.statusCode).toBe(200);
}
/** Acts as the conductor that offloads the server. */
async function endOffload(): Promise<void> {
  const { store } = rig.cell("north");
  const offload = store.tasks().find(({ kind }) => kind === "operate")?.task;
  if (offload === undefined) throw new Error("the cell has no operation");
  const from = { stage: "preparing", selection: 0 } as const;
  const write = { from, to: "succeed-keeping", selection: 0, reason: "", noted: [], unseenMs: 0 } as const;
  const taken = await rig.take("north", offload);
  await store.commitStep([{ ...taken, step: 1, ...writeOf(factsOf(offload), write) }]);
}
const shown = async (id: string) => {
  const { server } = (await rig.get(`/v2.1/servers/${id}`, as(104))).json();
  return { pinned: server.pinned_availability_zone, status: server.status };
};
const pin = (id: string, pinned_availability_zone: unknown, minor = 104) =>
  rig.put(`/v2.1/servers/${id}`, { server: { pinned_availability_zone } }, as(minor));
const migrate = (id: string) => rig.post(`/v2.1/servers/${id}/action`, { migrate: null }, as(104));
const zoneOfMove = async (id: string) => {
  const [move] = await rig.moves.waiting([id]);
  return { changes: move?.request.changesZone, zone: move?.request.availabilityZone };
};

describe("the zone that a server is pinned to", () => {
  test("is taken off by null, and the server's next move may go to any zone", async () => {
    const id = await active("nova");
    expect((await pin(id, null)).json().server.pinned_availability_zone).toBeNull();
    expect((await pin(id, null)).statusCode).toBe(200);
    expect((await migrate(id)).statusCode).toBe(202);
    expect(await zoneOfMove(id)).toEqual({ changes: true, zone: "" });
  });

  test("is set to the zone of the server's host, which its next move keeps", async () => {
    await hostJoinsZone();
    const id = await active();
    expect((await pin(id, "east")).json().server.pinned_availability_zone).toBe("east");
    expect((await pin(id, "east")).statusCode).toBe(200);
    expect((await migrate(id)).statusCode).toBe(202);
    expect(await zoneOfMove(id)).toEqual({ changes: true, zone: "east" });
  });

  test("is left alone by a move, unless it was changed", async () => {
    const id = await active("nova");
    await migrate(id);
    expect(await zoneOfMove(id)).toEqual({ changes: false, zone: "" });
  });

  test.each([
    [
      "another zone than the one it is in",
      undefined,
      "east",
      /only be pinned to its current availability zone 'nova', but 'east'/,
    ],
    ["another zone than the one it is pinned to", "nova", "east", /^Cannot change pinned availability zone directly/],
  ])("cannot be set to %s", async (_title, from, to, message) => {
    const id = await active(from);
    const refused = await pin(id, to);
    expect([refused.statusCode, refused.json().conflictingRequest.message]).toEqual([
      409,
      expect.stringMatching(message),
    ]);
    expect((await shown(id)).pinned).toBe(from ?? null);
  });

  test("is the one that an unshelve names, also after a change", async () => {
    const id = await active("nova");
    await pin(id, null);
    const act = (body: object) => rig.post(`/v2.1/servers/${id}/action`, body, as(104));
    expect((await act({ shelve: null })).statusCode).toBe(202);
    await endOffload();
    expect(await shown(id)).toEqual({ pinned: null, status: "SHELVED_OFFLOADED" });
    expect((await act({ unshelve: { availability_zone: "east" } })).statusCode).toBe(202);
    expect(await zoneOfMove(id)).toEqual({ changes: true, zone: "east" });
    expect((await shown(id)).pinned).toBe("east");
  });

  test.each([103, 96])("cannot be changed at 2.%i", async (minor) => {
    const refused = await pin(await active("nova"), null, minor);
    expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
      ...[400, "Additional properties are not allowed ('pinned_availability_zone' was unexpected)"],
    ]);
  });

  test.each([[""], [7], ["x".repeat(256)]])("cannot be %j", async (zone) => {
    expect((await pin(await active("nova"), zone)).statusCode).toBe(400);
  });
});
