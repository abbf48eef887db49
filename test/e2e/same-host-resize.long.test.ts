import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Server } from "../../core/tasks/server.ts";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";

const PATIENT = { everyMs: 50, withinMs: 60_000 };
const SLOTS = 4;

let cloud: Cloud;
let cell: E2eCell;
/** Flavors by the number of slots that they take of the only host, which has four. */
const flavors = new Map<number, string>();

beforeAll(async () => {
  cloud = await Cloud.start({
    ...{ cells: ["cell-1"], schedulers: 1, agents: 1, hostsPerAgent: 1, slotsPerHost: SLOTS },
    env: { BERTH_RESIZE_TO_SAME_HOST: "true" },
  });
  cell = cloud.cell("cell-1");
  for (const slots of [1, 2, 3, 4])
    flavors.set(slots, await cloud.compute.flavor({ "resources:CUSTOM_SLOT": String(slots) }));
});
afterAll(() => cloud?.close());
beforeEach(() => cloud.beforeTest());

const flavor = (slots: number): string => flavors.get(slots) ?? "";

/** The server as its cell has it, once it has this status and no operation is running. */
const become = (id: string, status: Server["status"]): Promise<Server> =>
  eventually(
    `it to be ${status}`,
    async () => {
      const [server] = await cell.store.servers([id]);
      const shown = await cloud.compute.show(id);
      const rests = server?.taskState === null && shown?.["OS-EXT-STS:task_state"] === null;
      return server?.status === status && rests && server;
    },
    PATIENT,
  );
const act = async (id: string, action: string, value: unknown = null): Promise<void> => {
  const answer = await cloud.compute.call("POST", `/servers/${id}/action`, { [action]: value });
  if (answer.status >= 300) throw new Error(`${action}: ${answer.status} ${await answer.text()}`);
};
const slotsOf = async (...consumers: readonly string[]): Promise<number[]> =>
  (await cell.store.holdings(consumers)).map((held) =>
    (held?.items ?? []).reduce((sum, item) => sum + (item.resourceClass === "CUSTOM_SLOT" ? item.amount : 0), 0),
  );
const migrationOf = async (id: string): Promise<string> => {
  const [migration] = await cell.store.migrations({ serverUuid: id, inFlightOnly: true, limit: 1 });
  return migration?.uuid ?? "";
};
const runsAs = (id: string, attemptId: string | null) =>
  eventually(
    "it to run once",
    async () => {
      const guests = [...(await cell.runningGuests()).values()].flat().filter((guest) => guest.serverUuid === id);
      return guests.length === 1 && guests[0]?.attemptId === attemptId;
    },
    PATIENT,
  );

test("a server grows on its only host although twice its size would not fit; once confirmed, it holds only the new size", async () => {
  const id = await cloud.compute.boot({ flavor: flavor(2) });
  const before = await become(id, "ACTIVE");
  await act(id, "resize", { flavorRef: flavor(4) });
  const resized = await become(id, "VERIFY_RESIZE");
  expect([resized.host, resized.attemptId === before.attemptId]).toEqual([before.host, false]);
  expect(await slotsOf(id, await migrationOf(id))).toEqual([4, 0]);
  await runsAs(id, resized.attemptId);
  await act(id, "confirmResize");
  const confirmed = await become(id, "ACTIVE");
  expect([confirmed.host, confirmed.spec.flavor?.id, await slotsOf(id)]).toEqual([before.host, flavor(4), [4]]);
  await runsAs(id, resized.attemptId);
  await cloud.compute.delete(id);
  await cloud.expectCleanAudit();
});

test("a server that shrinks keeps its old allocation until it is confirmed, and a revert restores it", async () => {
  const id = await cloud.compute.boot({ flavor: flavor(3) });
  const before = await become(id, "ACTIVE");
  await act(id, "resize", { flavorRef: flavor(1) });
  await become(id, "VERIFY_RESIZE");
  expect(await slotsOf(id, await migrationOf(id))).toEqual([1, 2]);
  await act(id, "revertResize");
  const reverted = await become(id, "ACTIVE");
  expect([reverted.host, reverted.attemptId, reverted.spec.flavor?.id]).toEqual([
    before.host,
    before.attemptId,
    flavor(3),
  ]);
  expect(await slotsOf(id)).toEqual([3]);
  await runsAs(id, before.attemptId);
  await cloud.compute.delete(id);
  await cloud.expectCleanAudit();
});

test("a server that would grow by more than is free stays unchanged and running, and the action shows the reason", async () => {
  const id = await cloud.compute.boot({ flavor: flavor(2) });
  const before = await become(id, "ACTIVE");
  const neighbour = await cloud.compute.boot({ flavor: flavor(1) });
  await become(neighbour, "ACTIVE");
  await act(id, "resize", { flavorRef: flavor(4) });
  expect(await become(id, "ACTIVE")).toMatchObject({ attemptId: before.attemptId, host: before.host });
  expect(await slotsOf(id)).toEqual([2]);
  const { instanceActions } = (await (
    await cloud.compute.call("GET", `/servers/${id}/os-instance-actions`)
  ).json()) as { instanceActions: { action: string; message: string | null }[] };
  expect(instanceActions[0]).toMatchObject({ action: "resize", message: "Error" });
  await act(id, "resize", { flavorRef: flavor(3) });
  await become(id, "VERIFY_RESIZE");
  expect(await slotsOf(id, neighbour)).toEqual([3, 1]);
  await act(id, "confirmResize");
  await become(id, "ACTIVE");
  await cloud.expectCleanAudit();
});
