import { expect, test } from "vitest";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { deviceOf } from "../../../adapters/qemu/volume-plugs.ts";
import { volumeOf } from "../../../test/rigs/begin-operation.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { giveVolume, takeVolume } from "./guest-volumes.ts";

const NEVER = new AbortController().signal;
const [ONE, TWO] = [1, 2].map((number) => `0000feed-0000-4000-8000-00000000000${number}`) as [string, string];

/** A running guest with both volumes, whose QEMU falls silent when it is asked for the first one, and whose record can be changed once before its disk is full. */
function guestWithout(room: { isFull: boolean }) {
  const places = [ONE, TWO].map((volumeId, index) => ({ volumeId, target: index + 1, lun: 0 }));
  let record: GuestRecord = guestRecord({ hasRun: true, volumes: places });
  const devices = new Set([ONE, TWO].map(deviceOf));
  const guest = {
    get record() {
      return record;
    },
    change: async (changes: Partial<GuestRecord>) => {
      if (room.isFull) throw new Error("no space left on device");
      record = { ...record, ...changes };
    },
    state: async () => "running",
    execute: async (command: string, args: { readonly id?: string } = {}) => {
      if (command === "qom-list") return [...devices].map((name) => ({ name }));
      if (command === "query-named-block-nodes") return [];
      if (command !== "device_del") return {};
      if (args.id !== deviceOf(ONE)) return devices.delete(args.id ?? "");
      room.isFull = true;
      throw new QmpError("silent", "QEMU did not answer");
    },
  } as unknown as QemuGuest;
  return { guest, volumes: () => record.volumes };
}

test("a caller hears why a volume was not disconnected, also when that cannot be recorded, and the next order corrects the record", async () => {
  const room = { isFull: false };
  const { guest, volumes } = guestWithout(room);
  await expect(takeVolume(guest, ONE, NEVER)).rejects.toThrow("QEMU did not answer");
  expect(volumes()?.map(({ isLeaving }) => isLeaving)).toEqual([true, undefined]);
  room.isFull = false;
  await takeVolume(guest, TWO, NEVER);
  expect(volumes()).toEqual([{ volumeId: ONE, target: 1, lun: 0 }]);
});

test("a guest that stands still boots from its boot volume again after that was disconnected and connected in another way", async () => {
  const place = { volumeId: ONE, target: 1, lun: 0, isRoot: true, connection: "former" };
  let record: GuestRecord = guestRecord({ hasRun: true, volumes: [place] });
  const guest = {
    get record() {
      return record;
    },
    change: async (changes: Partial<GuestRecord>) => {
      record = { ...record, ...changes };
    },
    state: async () => "absent",
  } as unknown as QemuGuest;
  await takeVolume(guest, ONE, NEVER);
  expect(record.volumes).toEqual([]);
  const volume = {
    ...volumeOf(1),
    volumeId: ONE,
    isRoot: true,
    imageRef: "cinder",
    inCinder: true,
    connection: "present",
  };
  const files = { fileOf: async () => ({ path: "/volume", format: "raw" }) } as never;
  await giveVolume(guest, volume, { files, signal: NEVER });
  expect(record.volumes).toMatchObject([{ volumeId: ONE, isRoot: true, connection: "present" }]);
});
