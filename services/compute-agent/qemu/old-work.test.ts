import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { readGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import type { VolumeFile } from "../../../adapters/qemu/mounted-volumes.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { SnapshotStore } from "../../../runtime/snapshot-store.ts";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { CalledOffMoves } from "./called-off-moves.ts";
import type { KnownGuests } from "./known-guests.ts";
import { OldWork } from "./old-work.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t1/0" };
const FEW = 4;
let clock: ManualClock;
let images: StorageGate;
let guest: QemuGuest;
let work: OldWork;
let unknown: unknown[];
let kept: unknown[];
let lacking: unknown[];
/** Finds the file of a volume. */
let fileOf: () => Promise<VolumeFile>;
/** Whether the guest's record has not been read, and what its reading waits for. */
let isUnread: boolean;
let reading: Promise<void>;

beforeEach(async () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "berth-old-work-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  clock = new ManualClock();
  images = new StorageGate({ name: "images", clock, callsMax: FEW, silentAfterMs: 1_000 });
  guest = await QemuGuest.create(dir, guestRecord({ ...NAME, hasRun: true, copiesTo: join(dir, "x.part") }));
  unknown = [];
  kept = [];
  lacking = [];
  fileOf = async () => ({ path: "/volumes/one", format: "raw" });
  isUnread = false;
  reading = Promise.resolve();
  work = makeWork();
});

function makeWork({ releaseMs }: { readonly releaseMs?: number } = {}): OldWork {
  const findLeft = async () => {
    await reading;
    isUnread = false;
    return guest;
  };
  const guests = { findLeft, existing: async () => guest, isUnread: () => isUnread };
  return new OldWork({
    clock,
    releaseMs,
    guests: guests as unknown as KnownGuests,
    snapshots: new SnapshotStore(guest.dir, ".qcow2", images),
    calledOff: new CalledOffMoves(clock, async () => undefined),
    onUnknown: (_, error) => unknown.push(error),
    volumes: { fileOf: () => fileOf() } as unknown as VolumeFiles,
    onVolumesLeft: (_, error) => lacking.push(error),
    onInterfacesLeft: (_, error) => kept.push(error),
  });
}

/** Lets all calls to the directory of images hang. */
function hang(): () => void {
  const calls = Array.from({ length: FEW }, () => Promise.withResolvers<void>());
  for (const { promise } of calls) images.work(() => promise);
  return () => {
    for (const { resolve } of calls) resolve();
  };
}

test("an order waits for the end of the old work that the agent waits for no longer, instead of ending it beside that", async () => {
  const answer = hang();
  let isAtRest = false;
  const ended = work.endOfLastProcess(NAME);
  const ordered = work.atRest(NAME).then(() => {
    isAtRest = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAtRest).toBe(false);
  answer();
  await Promise.all([ended, ordered]);
  expect(unknown).toEqual([]);
  expect(guest.record.copiesTo).toBeUndefined();
  expect(readGuestRecord(guest.dir)).toEqual(guest.record);
});

test("the orders of a guest with an old copy do not wait for a storage of images that is silent, and the copy is removed when it answers", async () => {
  const answer = hang();
  const ordered = work.atRest(NAME);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(1_000);
  expect(await ordered).toBe(guest);
  expect(await work.atRest(NAME)).toBe(guest);
  expect(guest.record.copiesTo).toBeDefined();
  answer();
  await expect.poll(() => images.silence).toBeNull();
  await work.atRest(NAME);
  expect(guest.record.copiesTo).toBeUndefined();
});

describe("a guest that an agent has asked to release two interfaces before it died", () => {
  const [first, second] = ["net-1", "net-2"];
  /** QEMU's commands that change something, in turn. */
  let changes: string[];
  /** The devices that QEMU has. */
  let devices: Set<string>;
  let hears: () => void;
  let heard: Promise<void>;

  beforeEach(async () => {
    const leaving = [first, second].map((id, index) => ({
      ...{ id, mac: `fa:16:3e:00:00:0${index}`, bridge: null, slot: index + 1, isLeaving: true as const },
    }));
    const { machine } = guest.record;
    await guest.change({ copiesTo: undefined, machine: { ...machine, interfaceSlots: 8, interfaces: leaving } });
    changes = [];
    devices = new Set([`${first}-device`, `${second}-device`]);
    ({ promise: heard, resolve: hears } = Promise.withResolvers<void>());
    vi.spyOn(guest, "state").mockResolvedValue("running");
    vi.spyOn(guest, "execute").mockImplementation(async (command, args) => {
      if (command === "query-migrate") return {};
      if (command === "qom-list") return [...devices].map((name) => ({ name }));
      changes.push(`${command} ${(args as { readonly id: string }).id}`);
      if (changes.filter((change) => change.startsWith("device_del")).length === 2) hears();
      return {};
    });
  });

  const interfaces = () => guest.record.machine.interfaces.map(({ id }) => id);

  test("is asked again for both at once, and each that it releases is forgotten", async () => {
    const ended = work.endOfLastProcess(NAME);
    await heard;
    expect(changes).toEqual([`device_del ${first}-device`, `device_del ${second}-device`]);
    devices.clear();
    await ended;
    expect([interfaces(), kept]).toEqual([[], []]);
  });

  test("is not waited for by an order that ends it or names its interfaces, and the next order asks it again", async () => {
    const ended = work.endOfLastProcess(NAME);
    await heard;
    expect(await work.atRest(NAME, { skipsDevices: true })).toBe(guest);
    await ended;
    expect([changes.length, interfaces(), kept]).toEqual([2, [first, second], []]);
    devices.clear();
    await work.atRest(NAME);
    expect(interfaces()).toEqual([]);
  });

  test("is not waited for by such an order either when its QEMU is silent", async () => {
    vi.spyOn(guest, "execute").mockImplementation(() => {
      hears();
      return new Promise(() => undefined);
    });
    const ended = work.endOfLastProcess(NAME);
    await heard;
    expect(await work.atRest(NAME, { skipsDevices: true })).toBe(guest);
    await ended;
    expect([interfaces(), kept]).toEqual([[first, second], []]);
  });

  test("is not waited for by such an order that is the first to read its record", async () => {
    isUnread = true;
    expect(await work.atRest(NAME, { skipsDevices: true })).toBe(guest);
    expect(changes).toEqual([]);
    devices.clear();
    await work.atRest(NAME);
    expect(interfaces()).toEqual([]);
  });

  test("is not waited for by such an order that comes while its record is read", async () => {
    const read = Promise.withResolvers<void>();
    reading = read.promise;
    const ended = work.endOfLastProcess(NAME);
    const ordered = work.atRest(NAME, { skipsDevices: true });
    await new Promise((resolve) => setImmediate(resolve));
    read.resolve();
    expect(await ordered).toBe(guest);
    await ended;
    expect(changes).toEqual([]);
    devices.clear();
    await work.atRest(NAME);
    expect(interfaces()).toEqual([]);
  });

  test.each(["while it is asked", "while its record is read"])(
    "is waited for by another order only until that is no longer wanted, also %s",
    async (moment) => {
      const read = Promise.withResolvers<void>();
      if (moment === "while its record is read") reading = read.promise;
      else read.resolve();
      const order = new AbortController();
      const ended = work.endOfLastProcess(NAME);
      const ordered = work.atRest(NAME, { signal: order.signal });
      if (moment === "while it is asked") await heard;
      order.abort(new Error("a later order was given"));
      read.resolve();
      await expect(ordered).rejects.toThrow("a later order was given");
      await ended;
      expect([changes.length, interfaces()]).toEqual([moment === "while it is asked" ? 2 : 0, [first, second]]);
      devices.clear();
      await work.atRest(NAME);
      expect(interfaces()).toEqual([]);
    },
  );

  describe("and releases one of them", () => {
    /** The guest has kept both, and the agent has given up. */
    beforeEach(async () => {
      work = makeWork({ releaseMs: 0 });
      await work.endOfLastProcess(NAME);
      expect([interfaces(), kept.length]).toEqual([[first, second], 1]);
      changes = [];
    });
    const release = (id: string) => {
      devices.delete(`${id}-device`);
      work.released(NAME, `${id}-device`);
    };

    test("later, loses the rest of it at once", async () => {
      release(first);
      await expect.poll(interfaces).toEqual([second]);
      expect(changes).toContain(`netdev_del ${first}`);
    });

    test("while an order is carried out, loses the rest of it at the order's end, and not before", async () => {
      const end = Promise.withResolvers<void>();
      const ordered = work.order(NAME, {}, () => end.promise);
      await new Promise((resolve) => setImmediate(resolve));
      release(first);
      await new Promise((resolve) => setImmediate(resolve));
      expect([changes, interfaces()]).toEqual([[], [first, second]]);
      end.resolve();
      await ordered;
      await expect.poll(interfaces).toEqual([second]);
    });

    test("by an order that has waited for this, is not looked at again", async () => {
      await work.order(NAME, {}, async () => {
        release(first);
        const { machine } = guest.record;
        await guest.change({
          machine: { ...machine, interfaces: machine.interfaces.filter(({ id }) => id !== first) },
        });
      });
      await work.atRest(NAME);
      expect([changes, interfaces()]).toEqual([[], [second]]);
    });

    test("again and again, is compared once a minute, and otherwise by its next order", async () => {
      release(first);
      await expect.poll(interfaces).toEqual([second]);
      changes = [];
      release(second);
      await new Promise((resolve) => setImmediate(resolve));
      expect([changes, interfaces()]).toEqual([[], [second]]);
      await work.atRest(NAME);
      expect(interfaces()).toEqual([]);
    });

    test("gets back one that its server keeps", async () => {
      const { machine } = guest.record;
      const staying = machine.interfaces.map(({ isLeaving: _, ...one }) => one);
      await guest.change({ machine: { ...machine, interfaces: staying } });
      release(first);
      await expect.poll(() => changes).toContain(`device_add ${first}-device`);
      expect(interfaces()).toEqual([first, second]);
    });

    test("while it is handed over, and runs on here, loses the rest of it with its next order", async () => {
      await guest.change({ handedTo: { attemptId: "t2/0", isDone: false, wasRunning: true } });
      release(first);
      await work.endCalledOff(NAME);
      expect([changes, interfaces()]).toEqual([[], [first, second]]);
      await guest.change({ handedTo: null });
      await work.atRest(NAME);
      expect(interfaces()).toEqual([second]);
    });

    test("when its agent ends, leaves it to the next process", async () => {
      work.close();
      release(first);
      await new Promise((resolve) => setImmediate(resolve));
      expect([changes, interfaces()]).toEqual([[], [first, second]]);
    });
  });

  test("is left alone when it is destroyed", async () => {
    const ended = work.endOfLastProcess(NAME);
    await heard;
    work.forget(NAME);
    await ended;
    expect([changes.length, interfaces(), kept]).toEqual([2, [first, second], []]);
  });
});

describe("a guest whose QEMU lacks volumes of its record", () => {
  const [own, leaving, replaced] = [1, 2, 3].map((number) => `0000feed-0000-4000-8000-00000000000${number}`) as [
    string,
    string,
    string,
  ];
  /** The devices that QEMU has got. */
  let added: string[];

  beforeEach(async () => {
    const replacement = { by: own, connection: "", former: undefined, node: null, isDecided: false };
    await guest.change({
      copiesTo: undefined,
      volumes: [
        { volumeId: own, target: 1, lun: 0 },
        { volumeId: leaving, target: 2, lun: 0, isLeaving: true },
        { volumeId: replaced, target: 3, lun: 0, replacement },
      ],
    });
    added = [];
    vi.spyOn(guest, "state").mockResolvedValue("running");
    vi.spyOn(guest, "execute").mockImplementation(async (command, args) => {
      if (command === "query-migrate") return {};
      if (command === "device_add") added.push((args as { readonly id: string }).id);
      return command === "qom-list" ? added.map((name) => ({ name })) : [];
    });
  });

  test("gets those that no agent was disconnecting or replacing, since conductors repeat these orders", async () => {
    await work.endOfLastProcess(NAME);
    expect([added, lacking]).toEqual([[`volume-${own}`], []]);
    await work.endOfLastProcess(NAME);
    expect(added).toHaveLength(1);
  });

  test("is not waited for by an order that starts it while the storage is silent, and the next order gives it the volume", async () => {
    const { promise: asked, resolve: asks } = Promise.withResolvers<void>();
    fileOf = () => {
      asks();
      return new Promise(() => undefined);
    };
    const ended = work.endOfLastProcess(NAME);
    await asked;
    expect(await work.atRest(NAME, { skipsDevices: true })).toBe(guest);
    await ended;
    expect([added, lacking]).toEqual([[], []]);
    fileOf = async () => ({ path: "/volumes/one", format: "raw" });
    await work.atRest(NAME);
    expect(added).toEqual([`volume-${own}`]);
  });

  test("obeys its orders without one that cannot be connected, of which the operator is told", async () => {
    fileOf = async () => {
      throw new QemuError("storage", "/volumes/one is missing");
    };
    await work.endOfLastProcess(NAME);
    expect(lacking).toMatchObject([{ message: "/volumes/one is missing" }]);
    expect(await work.atRest(NAME)).toBe(guest);
    expect([added, lacking.length]).toEqual([[], 1]);
  });

  test.each([
    ["has no QEMU", "absent"],
    ["was handed over", "postmigrate"],
  ])("is left as it is when it %s", async (_, state) => {
    vi.spyOn(guest, "state").mockResolvedValue(state);
    await work.endOfLastProcess(NAME);
    expect([added, lacking]).toEqual([[], []]);
  });
});
