import { expect, test } from "vitest";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { callOffHandOver, handOverLive } from "./hand-over.ts";
import type { TransferAddress } from "./transfer-address.ts";

const TO = { host: "127.0.0.1", memoryPort: 1, disksPort: null, key: null } as TransferAddress;
const control = (signal = new AbortController().signal) => ({
  ...{ signal, onProgress: () => undefined },
  ...{ force: false, bytesPerSecond: 1 },
});

interface Moment {
  /** QEMU's state of the transfer of the memory. */
  readonly status: string;
  /** QEMU's state of the guest. */
  readonly state: string;
}

/**
 * A QEMU that transfers its guest's memory. Its moments follow each other: each look at the transfer and each look at the guest is at the next one. It is told by
 * `migrate-continue` to pass the switch-over, and refuses this when it has passed it.
 */
function qemuOf(moments: readonly Moment[], handedTo: GuestRecord["handedTo"] = null) {
  const left = [...moments];
  const commands: string[] = [];
  const record = { handedTo, machine: { disks: [] } };
  const now = (): Moment => (left.length > 1 ? (left.shift() as Moment) : (left[0] as Moment));
  const execute = async (command: string): Promise<unknown> => {
    commands.push(command);
    switch (command) {
      case "query-migrate": {
        const { status } = now();
        return { status, ...(left.length === 1 && { downtime: 7 }) };
      }
      case "migrate-continue":
        if (left[0]?.status === "pre-switchover") return {};
        throw new QmpError("refused", "migrate-continue: Migration not in expected state: device");
      case "query-block-jobs":
      case "query-named-block-nodes":
      case "query-yank":
        return [];
      default:
        return {};
    }
  };
  const state = async () => now().state;
  const change = async (changes: object) => void Object.assign(record, changes);
  return { guest: { execute, state, change, record } as unknown as QemuGuest, record, commands };
}

const at = (status: string, state: string): Moment => ({ status, state });

test("a live move resolves when QEMU has finished with its guest, which it has not yet when it calls the transfer completed", async () => {
  const { guest } = qemuOf([
    at("none", "running"),
    at("active", "running"),
    at("completed", "finish-migrate"),
    at("completed", "finish-migrate"),
    at("completed", "finish-migrate"),
    at("completed", "postmigrate"),
  ]);
  // The downtime is known last.
  expect(await handOverLive(guest, TO, control())).toBe(7);
  expect(await guest.state()).toBe("postmigrate");
});

test("a transfer that passes its switch-over only after it was seen before it once more is completed", async () => {
  const { guest, commands } = qemuOf([
    at("none", "running"),
    at("pre-switchover", "finish-migrate"),
    at("pre-switchover", "finish-migrate"),
    at("device", "finish-migrate"),
    at("completed", "postmigrate"),
  ]);
  expect(await handOverLive(guest, TO, control())).toBe(7);
  expect(commands.filter((command) => command === "migrate-continue")).toHaveLength(2);
});

test("a move that is called off after it was completed leaves the guest to the next order, also before QEMU has finished with it", async () => {
  const handedTo = { attemptId: "task/h2", isDone: false, wasRunning: true };
  const { guest, record, commands } = qemuOf(
    [
      at("completed", "finish-migrate"),
      at("completed", "finish-migrate"),
      at("completed", "finish-migrate"),
      at("completed", "postmigrate"),
    ],
    handedTo,
  );
  await callOffHandOver(guest);
  expect(record.handedTo).toEqual(handedTo);
  expect(commands).not.toContain("cont");
});
