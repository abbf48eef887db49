import { beforeEach, expect, test } from "vitest";
import type { ConductorStream } from "../../core/agent/link.ts";
import type { OrderReport } from "../../proto/gen/berth/agent.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import { systemClock } from "../../runtime/clock.ts";
import { volumeOf } from "../../test/rigs/begin-operation.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { NotingDriver } from "../../test/rigs/noting-driver.ts";
import { openGuestOrders } from "../../test/rigs/open-guest-orders.ts";
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
let stream: ConductorStream;

beforeEach(async () => {
  disk = { records: [{ kind: "guest", ...NAME, state: "running", atMs: 1 }] };
  driver = new NotingDriver();
  await driver.adopt([{ ...NAME, state: "running" }]);
  await open();
});

async function open(): Promise<void> {
  ({ store, orders, stream, answers } = await openGuestOrders(disk, { driver, clock: systemClock }));
}

const answered = (count: number) => eventually(`${count} answers`, () => answers.length >= count);
const VOLUME = volumeOf(1);
const changeVolume = (verb: "attach-volume" | "detach-volume", order: number, volume: ServerVolume | undefined) =>
  orders.power(
    {
      ...NAME,
      verb,
      orderId: `o/${order}`,
      revision: order,
      imageId: "",
      snapshot: undefined,
      files: [],
      rescueImage: undefined,
      interfaces: undefined,
      volume,
    },
    stream,
  );
const volumes = () => [store.all()[0], driver.guests()[0]].map((guest) => guest && "volumes" in guest && guest.volumes);

test("a volume is attached and detached, repeated orders are answered alike, and the journal remembers the volume", async () => {
  changeVolume("attach-volume", 1, VOLUME);
  await answered(1);
  changeVolume("attach-volume", 1, VOLUME);
  const stop = { ...NAME, verb: "stop", orderId: "o/2", revision: 2 };
  orders.power(
    {
      ...stop,
      imageId: "",
      snapshot: undefined,
      files: [],
      rescueImage: undefined,
      interfaces: undefined,
      volume: undefined,
    },
    stream,
  );
  await answered(3);
  expect([answers.map(({ failed }) => failed), store.all()[0]?.state]).toEqual([["", "", ""], "stopped"]);
  expect(volumes()).toEqual([[VOLUME], [VOLUME.volumeId]]);
  await open();
  expect(volumes()[0]).toEqual([VOLUME]);
  changeVolume("attach-volume", 1, VOLUME);
  changeVolume("detach-volume", 3, VOLUME);
  await answered(2);
  changeVolume("detach-volume", 3, VOLUME);
  await answered(3);
  expect(answers.map(({ failed }) => failed).sort()).toEqual(["", "", "a later order was given"]);
  expect(volumes()).toEqual([[], false]);
});

test("an order for a volume without an id is refused, and so is an attachment where the driver cannot do it", async () => {
  changeVolume("attach-volume", 1, undefined);
  changeVolume("attach-volume", 2, { ...VOLUME, volumeId: "../x" });
  Object.assign(driver, { capabilities: new Set() });
  changeVolume("attach-volume", 3, VOLUME);
  changeVolume("detach-volume", 4, VOLUME);
  await answered(4);
  expect(answers.map(({ failed }) => failed)).toEqual([
    '"" is no volume id',
    '"../x" is no volume id',
    "the host's driver cannot attach volumes",
    "",
  ]);
  expect(driver.guests()).toMatchObject([{ running: true }]);
});

test("a guest that is gone has no volume: it cannot get one, and a detachment is done", async () => {
  const gone = {
    ...NAME,
    attemptId: "t/9",
    imageId: "",
    snapshot: undefined,
    files: [],
    rescueImage: undefined,
    interfaces: undefined,
    volume: VOLUME,
  };
  orders.power({ ...gone, verb: "attach-volume", orderId: "o/1", revision: 1 }, stream);
  orders.power({ ...gone, verb: "detach-volume", orderId: "o/2", revision: 2 }, stream);
  await answered(2);
  expect(answers.map(({ failed }) => failed)).toEqual(["there is no such guest", ""]);
  expect(volumes()).toEqual([false, false]);
});

test("a guest that was destroyed has no volume, and a detachment from one that is still there is refused", async () => {
  disk.records.push({ kind: "tombstone", ...NAME, atMs: 2 });
  await open();
  changeVolume("detach-volume", 1, VOLUME);
  await answered(1);
  const refusals = answers.map(({ failed }) => failed);
  disk.records.push({ kind: "gone", ...NAME });
  driver.powersOf = async () => ["missing"];
  await open();
  changeVolume("detach-volume", 1, VOLUME);
  await answered(1);
  changeVolume("attach-volume", 2, VOLUME);
  await answered(2);
  const buried = "the server was destroyed here before";
  expect([refusals, answers.map(({ failed }) => failed)]).toEqual([[buried], ["", buried]]);
});

test("a guest that the agent's journal has lost loses its volume all the same, and is not recorded", async () => {
  const lost = { ...NAME, attemptId: "t/9" };
  await driver.adopt([{ ...lost, state: "running", volumes: [VOLUME] }]);
  const detach = {
    ...lost,
    verb: "detach-volume",
    imageId: "",
    snapshot: undefined,
    files: [],
    rescueImage: undefined,
    interfaces: undefined,
    volume: VOLUME,
  };
  const volumesOfLost = () => driver.guests().find(({ attemptId }) => attemptId === lost.attemptId)?.volumes;
  expect(volumesOfLost()).toEqual([VOLUME.volumeId]);
  driver.powersOf = async () => ["unknown"];
  orders.power({ ...detach, orderId: "o/1", revision: 1 }, stream);
  await answered(1);
  expect([answers[0]?.failed, volumesOfLost()]).toEqual([
    "the guest is not whole or cannot be looked at, so it may have the volume",
    [VOLUME.volumeId],
  ]);
  driver.powersOf = async () => ["running"];
  orders.power({ ...detach, orderId: "o/1", revision: 1 }, stream);
  await answered(2);
  orders.power({ ...detach, orderId: "o/1", revision: 1 }, stream);
  await answered(3);
  expect([answers.slice(1).map(({ failed }) => failed), volumesOfLost()]).toEqual([["", ""], undefined]);
  expect(store.all().map(({ attemptId }) => attemptId)).toEqual([NAME.attemptId]);
});

test("a volume is not said to be detached from a guest that is being built", async () => {
  const built = { ...NAME, attemptId: "t/9" };
  disk.records.push({ kind: "guest", ...built, state: "building", atMs: 2, volumes: [VOLUME] });
  await open();
  const detach = {
    ...built,
    verb: "detach-volume",
    imageId: "",
    snapshot: undefined,
    files: [],
    rescueImage: undefined,
    interfaces: undefined,
    volume: VOLUME,
  };
  orders.power({ ...detach, orderId: "o/1", revision: 1 }, stream);
  await answered(1);
  expect(answers[0]?.failed).toContain("is not whole");
});

test("a detachment waits for an attachment that cannot be called off, and the guest has no volume afterwards", async () => {
  const attach = driver.attachVolume.bind(driver);
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  driver.attachVolume = async (...order) => {
    begun.resolve();
    await goOn.promise;
    await attach(...order);
  };
  changeVolume("attach-volume", 1, VOLUME);
  await begun.promise;
  changeVolume("detach-volume", 2, VOLUME);
  goOn.resolve();
  await answered(2);
  expect(answers.map(({ orderId, failed }) => [orderId, failed])).toEqual([
    ["o/1", ""],
    ["o/2", ""],
  ]);
  expect(volumes()).toEqual([[], false]);
});

test("a host that has stopped a guest says which volumes it has, also to a repeated order, and that it has none if it has recorded none", async () => {
  const stop = (order: number) =>
    orders.power(
      {
        ...{ ...NAME, verb: "stop", orderId: `o/${order}`, revision: order, imageId: "", files: [] },
        ...{ snapshot: undefined, rescueImage: undefined, interfaces: undefined, volume: undefined },
      },
      stream,
    );
  stop(1);
  await answered(1);
  changeVolume("attach-volume", 2, VOLUME);
  await answered(2);
  for (const count of [3, 4]) {
    stop(3);
    await answered(count);
  }
  changeVolume("detach-volume", 4, VOLUME);
  await answered(5);
  stop(5);
  await answered(6);
  expect(answers.map(({ failed }) => failed)).toEqual(Array(6).fill(""));
  const has = { volumeIds: [VOLUME.volumeId] };
  const none = { volumeIds: [] };
  expect(answers.map((answer) => answer.volumes)).toEqual([none, undefined, has, has, undefined, none]);
});

test("a guest without the volume has nothing to keep if it was not told to use the other one", async () => {
  const keep = { ...NAME, verb: "keep-volume", imageId: "", snapshot: undefined, files: [], rescueImage: undefined };
  const volume = { ...VOLUME, replacedBy: volumeOf(2).volumeId };
  orders.power({ ...keep, orderId: "o/1", revision: 1, interfaces: undefined, volume }, stream);
  await answered(1);
  orders.power({ ...keep, orderId: "o/2", revision: 2, interfaces: undefined, volume, mayLackVolume: true }, stream);
  await answered(2);
  expect(answers.map(({ failed }) => failed)).toEqual([`the guest does not have volume ${VOLUME.volumeId}`, ""]);
});
