import { expect, test } from "vitest";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { SilentStorageError } from "../../../runtime/storage-gate.ts";
import { type PowerControl, rebootGuest, startGuest, unpauseGuest } from "./guest-power.ts";

const LOCK = 'Failed to get "write" lock';

/** A guest whose memory another host has got, and whose disks that host's QEMU gives up only after some refusals. */
function guestRefused(times: number, reason: string) {
  const commands: string[] = [];
  let left = times;
  const guest = {
    record: {
      hasRun: true,
      runningIn: null,
      isSuspended: false,
      receives: null,
      handedTo: "there",
      machine: { disks: [] },
    },
    state: async () => "postmigrate",
    pin: async () => {},
    change: async () => {},
    execute: async (command: string) => {
      commands.push(command);
      if (command !== "cont") return [];
      left -= 1;
      if (left >= 0) throw new QmpError("refused", `cont: ${reason}`);
      return {};
    },
  };
  const control = { volumes: null, signal: new AbortController().signal } as unknown as PowerControl;
  const continued = () => unpauseGuest(guest as unknown as QemuGuest, control);
  return { continued, conts: () => commands.filter((command) => command === "cont").length };
}

test.each([
  ["2 times", 2],
  ["for more than 3 s", 200],
])(
  "a guest that was handed over in vain waits until the other host's QEMU, which has refused its disks %s, has given them up",
  async (_, times) => {
    const { continued, conts } = guestRefused(times, LOCK);
    await continued();
    expect(conts()).toBe(times + 1);
  },
);

test("another refusal is none of a lock, and is told at once", async () => {
  const { continued, conts } = guestRefused(1, "the device has no medium");
  await expect(continued()).rejects.toThrow("no medium");
  expect(conts()).toBe(1);
});

test.each([null, { interfaces: [], bridge: null }])(
  "a hard reboot on a storage that does not answer leaves the guest as it runs, also with the interfaces %j",
  async (wanted) => {
    const done: string[] = [];
    const guest = {
      record: { machine: { disks: [], interfaces: [] } },
      state: async () => "running",
      reach: () => Promise.reject(new SilentStorageError("the directory has not answered")),
      end: async () => void done.push("end"),
      change: async () => void done.push("change"),
    } as unknown as QemuGuest;
    const control = { isSoft: false, wanted, signal: new AbortController().signal } as unknown as PowerControl;
    await expect(rebootGuest(guest, { ...control, isSoft: false, wanted })).rejects.toThrow("has not answered");
    expect(done).toEqual([]);
  },
);

/** A guest whose transfer QEMU finishes after some looks, with the power of the QEMU's program over it. */
function finishing(looks: number) {
  const done: string[] = [];
  let left = looks;
  const guest = {
    record: {
      hasRun: true,
      runningIn: null,
      isSuspended: false,
      receives: null,
      handedTo: null,
      machine: { disks: [] },
    },
    state: async () => {
      left -= 1;
      return left >= 0 ? "finish-migrate" : "postmigrate";
    },
    reach: async () => {},
    pin: async () => {},
    change: async () => {},
    end: async () => void done.push("end"),
    boot: async () => void done.push("boot"),
    execute: async (command: string) => {
      done.push(command);
      return [];
    },
  } as unknown as QemuGuest;
  const control = { volumes: null, signal: new AbortController().signal } as unknown as PowerControl;
  return { done, started: startGuest(guest, control) };
}

test("a guest whose transfer QEMU is about to finish goes on when it has", async () => {
  const { done, started } = finishing(3);
  await started;
  expect(done).toContain("cont");
  expect(done).not.toContain("end");
});

test("a guest whose transfer QEMU does not finish is not booted, since that would end the only memory of it", async () => {
  const { done, started } = finishing(Number.POSITIVE_INFINITY);
  await expect(started).rejects.toThrow("QEMU has not finished the guest's transfer");
  expect(done).toEqual([]);
});
