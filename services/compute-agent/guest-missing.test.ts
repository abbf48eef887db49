import { expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";
import type { MemoryDisk } from "./memory-journal.ts";

const NAME: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };
type Records = MemoryDisk["records"];
const KNOWN: Records = [{ kind: "guest", ...NAME, state: "running", atMs: 1 }];
const BURIED: Records = [{ kind: "tombstone", ...NAME, atMs: 1 }];
const BUILDING: Records = [{ kind: "guest", ...NAME, state: "building", atMs: 1 }];

const missing = async () => ["missing"] as const;
const running = async () => ["running"] as const;
const destroyed = async (store: GuestStore) => {
  await store.record({ kind: "tombstone", ...NAME, atMs: 1 });
  return missing();
};
const broken = () => Promise.reject(new Error("the hypervisor does not answer"));

/** Has the agent hand the guest over, while its driver cannot do that, and returns the answer. */
async function handedOver(records: Records, powersOf: (store: GuestStore) => ReturnType<NotingDriver["powersOf"]>) {
  const driver = new NotingDriver();
  driver.handOff = () => Promise.reject(new Error("it cannot be stopped"));
  const { orders, stream, answers, store } = await openGuestOrders(
    { records: [...records] },
    { driver, clock: systemClock },
  );
  driver.powersOf = () => powersOf(store);
  const to = { toHost: "h", toAttemptId: "t/1", listensAt: "", live: false, force: false };
  orders.handOff({ ...NAME, ...to, orderId: "o/1", revision: 1, timeoutMs: 1_000, files: undefined }, stream);
  await eventually("the answer", () => answers.length === 1);
  const [{ failed, guestMissing } = { failed: "", guestMissing: undefined }] = answers;
  return { failed, guestMissing, heard: store.heardBy(NAME) };
}

test.each([
  ["its journal knows", KNOWN],
  ["its journal does not know", []],
])("a host says that it has lost a guest that %s if its driver is sure of it", async (_, records) => {
  expect(await handedOver(records, missing)).toMatchObject({ failed: "there is no such guest", guestMissing: true });
});

test.each<[string, string, Records, Parameters<typeof handedOver>[1], string]>([
  ["is there", "its journal knows", KNOWN, running, "it cannot be stopped"],
  ["cannot be looked at", "its journal knows", KNOWN, broken, "it cannot be stopped"],
  ["is there", "its journal does not know", [], running, "does not know the guest, which is on the host"],
  ["cannot be looked at", "its journal does not know", [], broken, "or cannot be looked at"],
  ["is not there", "was destroyed by order", BURIED, missing, "was destroyed here before"],
  ["is not there", "is destroyed by order during the look", [], destroyed, "was destroyed here before"],
  ["is not there", "its journal knows until it is destroyed during the look", KNOWN, destroyed, "it cannot be stopped"],
  ["is not there yet", "is being built", BUILDING, missing, "there is no such guest"],
])("a host does not say so of a guest that %s and that %s", async (_, __, records, powersOf, failed) => {
  const answer = await handedOver(records, powersOf);
  expect(answer.failed).toContain(failed);
  expect(answer.guestMissing).toBeUndefined();
});

test("nothing is remembered of an order to a guest that the host does not know", async () => {
  expect((await handedOver([], missing)).heard).toBe(0);
});
