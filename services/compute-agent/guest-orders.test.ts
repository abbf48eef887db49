import { beforeEach, expect, test } from "vitest";
import type { ConductorStream } from "../../core/agent/link.ts";
import { type AttemptReport, GuestState, type OrderReport } from "../../proto/gen/berth/agent.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { VirtualClock } from "../../sim/virtual-clock.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
import type { GuestObserver } from "./guest-observer.ts";
import type { GuestOrders } from "./guest-orders.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";
import type { MemoryDisk } from "./memory-journal.ts";

const NAME: GuestName = { host: "h", serverUuid: "s", attemptId: "t/0" };

let disk: MemoryDisk;
let driver: NotingDriver;
let store: GuestStore;
let orders: GuestOrders;
let answers: OrderReport[];
let reports: AttemptReport[];
let observer: GuestObserver;
let stream: ConductorStream;

beforeEach(async () => {
  disk = { records: [{ kind: "guest", ...NAME, state: "running", atMs: 1 }] };
  driver = new NotingDriver();
  await driver.adopt([{ ...NAME, state: "running" }]);
  await open();
});

async function open(clock: Clock = systemClock): Promise<void> {
  ({ store, observer, orders, stream, answers, reports } = await openGuestOrders(disk, { driver, clock }));
}

const NOTHING = { volume: undefined, interfaces: undefined, snapshot: undefined, files: [] };
const RESCUE_IMAGE = { imageRef: "rescue", imageProperties: {} };
const power = (verb: string, order: number, revision = order, imageId = "") => {
  const rescueImage = verb === "rescue" && imageId === "" ? RESCUE_IMAGE : undefined;
  orders.power({ ...NAME, verb, orderId: `o/${order}`, revision, imageId, rescueImage, ...NOTHING }, stream);
};
/** Sends a hand-off. The forced form of a step's order has another id and the same revision. */
const handOff = (order: number, force = false) =>
  orders.handOff(
    {
      ...NAME,
      toHost: "other",
      toAttemptId: "t/1",
      listensAt: "",
      live: true,
      force,
      orderId: `o/${order}${force ? "/forced" : ""}`,
      revision: order,
      timeoutMs: 0,
      files: undefined,
    },
    stream,
  );
const answered = (count: number) => eventually(`${count} answers`, () => answers.length >= count);
const state = () => store.guest(NAME.host, NAME.attemptId)?.state;

test("carries out a repeated order once, and answers it again", async () => {
  power("stop", 1);
  power("stop", 1);
  await answered(1);
  power("stop", 1);
  await answered(2);
  expect(answers.map((answer) => answer.failed)).toEqual(["", ""]);
  expect([driver.calls, state()]).toEqual([["stop"], "stopped"]);
});

test("refuses an order that is older than an obeyed one, even after the agent's death", async () => {
  power("stop", 5);
  await answered(1);
  power("start", 4);
  await answered(2);
  expect(answers[1]?.failed).toBe("a later order was given");
  await open();
  power("start", 4);
  await answered(1);
  expect([answers[0]?.failed, state()]).toEqual(["a later order was given", "stopped"]);
  power("start", 6);
  await answered(2);
  expect([answers[1]?.failed, state()]).toEqual(["", "running"]);
});

test("a newer order cancels a hand-off and is carried out after it", async () => {
  handOff(2);
  await eventually("the hand-over", () => driver.calls.length === 1);
  power("start", 3);
  await answered(2);
  expect(answers.map((answer) => [answer.orderId, answer.failed])).toEqual([
    ["o/2", "a later order was given"],
    ["o/3", ""],
  ]);
  expect(state()).toBe("running");
});

test("a completed hand-off leaves the guest stopped", async () => {
  handOff(2);
  driver.released.resolve();
  await answered(1);
  expect([answers[0]?.failed, state()]).toEqual(["", "stopped"]);
});

test("a plain hand-off that arrives after its forced form cancels nothing", async () => {
  handOff(2, true);
  await eventually("the forced one", () => driver.calls.length === 1);
  handOff(2);
  await answered(1);
  expect(answers).toMatchObject([{ orderId: "o/2", failed: "a later order was given" }]);
  driver.released.resolve();
  await answered(2);
  expect(answers[1]).toMatchObject({ orderId: "o/2/forced", failed: "" });
  handOff(2);
  await answered(3);
  expect([answers[2]?.failed, driver.calls.length, state()]).toEqual(["a later order was given", 1, "stopped"]);
});

test("a forced hand-off cancels its plain form, and is carried out after it", async () => {
  handOff(2);
  await eventually("the plain one", () => driver.calls.length === 1);
  handOff(2, true);
  await answered(1);
  expect(answers[0]).toMatchObject({ orderId: "o/2", failed: "a later order was given" });
  await eventually("the forced one", () => driver.calls.length === 2);
  driver.released.resolve();
  await answered(2);
  handOff(3);
  await answered(3);
  handOff(3, true);
  await answered(4);
  expect([answers[3]?.failed, driver.calls.length]).toEqual(["", 3]);
});

test("a guest that was handed over is not copied again after the agent's death, because its copy may run", async () => {
  handOff(2);
  driver.released.resolve();
  await answered(1);
  await open();
  handOff(2);
  handOff(2, true);
  power("start", 7, 2);
  await answered(3);
  expect(answers.map((answer) => answer.failed)).toEqual(["", "", "a later order was given"]);
  expect([driver.calls.length, state()]).toEqual([1, "stopped"]);
});

test("an order starts its guest again when the host has lost the guest's power since", async () => {
  power("start", 2);
  await answered(1);
  await store.record({ kind: "guest", ...NAME, state: "stopped", atMs: 3, revision: 2 });
  await open();
  power("start", 2);
  await answered(1);
  expect([answers[0]?.failed, driver.calls, state()]).toEqual(["", ["start", "start"], "running"]);
});

test("a guest that does not exist or was destroyed here obeys no order", async () => {
  orders.power(
    {
      ...NAME,
      attemptId: "t/9",
      verb: "start",
      orderId: "o/1",
      revision: 1,
      imageId: "",
      rescueImage: undefined,
      ...NOTHING,
    },
    stream,
  );
  await answered(1);
  await store.record({ kind: "tombstone", ...NAME, atMs: 2 });
  power("start", 2);
  await answered(2);
  expect(answers.map((answer) => answer.failed)).toEqual([
    "there is no such guest",
    "the server was destroyed here before",
  ]);
  power("dance", 3);
  expect(answers[2]?.failed).toBe("no such verb: dance");
});

/** Records a guest that was never started. */
async function prepared(): Promise<void> {
  await store.record({ kind: "guest", ...NAME, state: "prepared", atMs: 1 });
  await driver.adopt([{ ...NAME, state: "prepared" }]);
}
const start = (revision: number) => orders.start({ ...NAME, revision, interfaces: undefined, files: [] }, stream);
const runs = () => driver.guests().some(({ running }) => running);

test("an order that arrives during a start is carried out after it, and decides the final state", async () => {
  await prepared();
  const starting = Promise.withResolvers<void>();
  driver.starting = starting.promise;
  start(0);
  await eventually("the start", () => driver.calls.length === 1);
  power("stop", 1);
  start(0);
  expect(reports).toMatchObject([{ state: GuestState.GUEST_STATE_FAILED, reason: "a later order was given" }]);
  starting.resolve();
  await answered(1);
  expect([answers[0]?.failed, driver.calls, state(), runs()]).toEqual(["", ["first start", "stop"], "stopped", false]);
  await open();
  expect(store.guest(NAME.host, NAME.attemptId)).toMatchObject({ state: "stopped", revision: 1 });
});

test("carries out a repeated start once, and answers it again", async () => {
  await prepared();
  start(0);
  start(0);
  await eventually("the answer", () => reports.length === 1);
  start(0);
  await eventually("both answers", () => reports.length === 2);
  expect(reports.map((report) => report.state)).toEqual([
    GuestState.GUEST_STATE_RUNNING,
    GuestState.GUEST_STATE_RUNNING,
  ]);
  expect([driver.calls, state()]).toEqual([["first start"], "running"]);
});

test("stops a guest that was never started, because an interrupted start may have succeeded", async () => {
  await prepared();
  await driver.start(NAME, new AbortController().signal);
  power("stop", 1);
  await answered(1);
  expect([answers[0]?.failed, state(), runs()]).toEqual(["", "stopped", false]);
});

test("pauses a guest that has received the memory of a paused one, without starting it", async () => {
  await store.record({ kind: "guest", ...NAME, state: "prepared", listensAt: "h:1", atMs: 1 });
  await driver.adopt([{ ...NAME, state: "prepared" }]);
  power("pause", 1);
  await answered(1);
  expect([answers[0]?.failed, driver.calls, state()]).toEqual(["", ["pause"], "paused"]);
});

test("starts a guest that was never started before pausing it", async () => {
  await prepared();
  power("pause", 1);
  await answered(1);
  expect([driver.calls, state()]).toEqual([["first start", "pause"], "paused"]);
});

test("an order whose answer was lost is done if the guest is in the right state, and failed if the state is unknown", async () => {
  driver.losesAnswers = true;
  power("stop", 1);
  await answered(1);
  expect([answers[0]?.failed, state()]).toEqual(["", "stopped"]);
  power("reboot", 2);
  await answered(2);
  expect([answers[1]?.failed, state(), runs()]).toEqual(["the connection was lost", "running", true]);
});

test("detects that a guest shut itself down, and starts it again by an order that was obeyed before", async () => {
  power("start", 2);
  await answered(1);
  await driver.power(NAME, "stop", new AbortController().signal);
  await observer.correct(store.guestsOf(NAME.host));
  expect(store.guest(NAME.host, NAME.attemptId)).toMatchObject({ state: "stopped", revision: 2 });
  power("start", 2);
  await answered(2);
  expect([answers[1]?.failed, state(), runs()]).toEqual(["", "running", true]);
});

test.each([
  ["is done by then", false, "", "stopped"],
  ["was not done", true, "the driver's stop took longer than 60000 ms", "running"],
])(
  "a stop that exceeds its deadline is answered when it has ended, by the final state: it %s",
  async (_, breaksOff, failed, is) => {
    const clock = new VirtualClock(0);
    await open(clock);
    const powering = Promise.withResolvers<void>();
    driver.powering = powering.promise;
    power("stop", 1);
    await eventually("the stop", () => driver.calls.length === 1);
    clock.step(60_000);
    expect(driver.calls).toEqual(["stop", "give up stop"]);
    power("stop", 1);
    expect(answers).toEqual([]);
    if (breaksOff) powering.reject(new Error("the shutdown was ignored"));
    else powering.resolve();
    await answered(1);
    expect([answers[0]?.failed, state(), runs()]).toEqual([failed, is, is === "running"]);
  },
);

test("refuses to suspend a guest where the driver cannot, and leaves the guest alone", async () => {
  Object.assign(driver, { capabilities: new Set() });
  power("suspend", 1);
  power("resume", 2);
  power("pause", 3);
  await answered(3);
  const refusal = "the host's driver cannot suspend guests";
  expect(answers.map(({ failed }) => failed)).toEqual([refusal, refusal, ""]);
  expect([driver.calls, state()]).toEqual([["pause"], "paused"]);
});

test("interrupts a guest once for each order, also when the order comes again, and refuses where the driver cannot", async () => {
  power("inject-nmi", 1);
  await answered(1);
  power("inject-nmi", 1);
  power("inject-nmi", 2);
  await answered(3);
  expect(answers.map(({ failed }) => failed)).toEqual(["", "", ""]);
  expect([driver.calls, state()]).toEqual([["inject-nmi", "inject-nmi"], "running"]);
  Object.assign(driver, { capabilities: new Set() });
  power("inject-nmi", 3);
  await answered(4);
  expect(answers[3]?.failed).toBe("the host's driver cannot send guests a non-maskable interrupt");
});

test("an interrupt that fails has failed, although the guest runs as before", async () => {
  driver.losesAnswers = true;
  power("inject-nmi", 1);
  await answered(1);
  expect([answers[0]?.failed, state()]).toEqual(["the connection was lost", "running"]);
});

test("refuses to rescue a guest where the driver cannot, without an image, and leaves the guest alone", async () => {
  Object.assign(driver, { capabilities: new Set() });
  power("rescue", 1);
  power("unrescue", 2);
  await answered(2);
  Object.assign(driver, { capabilities: new Set(["rescue"]) });
  power("rescue", 3, 3, "not a rescue image");
  await answered(3);
  const refusal = "the host's driver cannot rescue guests";
  expect(answers.map(({ failed }) => failed)).toEqual([refusal, refusal, "the order names no rescue image"]);
  expect([driver.calls, state()]).toEqual([[], "running"]);
});

test("a rescue is recorded, is repeated only after the agent has lost its answer, and ends by a start", async () => {
  power("start", 1);
  await answered(1);
  power("rescue", 2);
  await answered(2);
  power("rescue", 2);
  await answered(3);
  expect([answers.map(({ failed }) => failed), driver.rescues, state()]).toEqual([["", "", ""], 1, "rescued"]);
  power("start", 3);
  await answered(4);
  expect([answers[3]?.failed, state(), runs()]).toEqual(["", "running", true]);
  power("rescue", 2);
  await answered(5);
  expect([answers[4]?.failed, driver.rescues, state()]).toEqual(["a later order was given", 1, "running"]);
});

test("a rescue that failed and stopped the guest is recorded so", async () => {
  power("start", 1);
  await answered(1);
  driver.rescuing = async () => {
    await driver.power(NAME, "stop", new AbortController().signal);
    throw new Error("the image is corrupt");
  };
  power("rescue", 2);
  await answered(2);
  expect([answers[1]?.failed, state(), runs()]).toEqual(["the image is corrupt", "stopped", false]);
});

const IMAGE = "0f0e0d0c-0000-4000-8000-000000000001";

test("a snapshot leaves the guest as it is, and a repeated order makes no second copy", async () => {
  power("start", 1);
  await answered(1);
  power("snapshot", 2, 2, IMAGE);
  await answered(2);
  power("snapshot", 2, 2, IMAGE);
  await answered(3);
  expect(answers.map(({ failed }) => failed)).toEqual(["", "", ""]);
  expect([driver.images(), driver.snapshots, state()]).toEqual([[IMAGE], 1, "running"]);
});

test("a snapshot of an image without an id, or of a guest that is gone, is refused", async () => {
  power("snapshot", 1, 1, "../x");
  const other = { ...NAME, attemptId: "t/9", verb: "snapshot", orderId: "o/2", revision: 2 };
  orders.power({ ...other, imageId: IMAGE, rescueImage: undefined, ...NOTHING }, stream);
  await answered(2);
  expect(answers.map(({ failed }) => failed)).toEqual(['"../x" is no image id', "there is no such guest"]);
  expect(driver.images()).toEqual([]);
});

test("a later order ends a snapshot, which then leaves no image", async () => {
  power("start", 1);
  await answered(1);
  driver.snapshotting = Promise.withResolvers<void>().promise;
  power("snapshot", 2, 2, IMAGE);
  await eventually("the snapshot to begin", () => driver.snapshots === 1);
  power("stop", 3);
  await answered(3);
  expect(answers.map(({ failed }) => failed)).toEqual(["", "a later order was given", ""]);
  expect([driver.images(), state()]).toEqual([[], "stopped"]);
});
