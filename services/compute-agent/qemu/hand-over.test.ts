import { expect, test } from "vitest";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { CalledOffMoves } from "./called-off-moves.ts";
import { callOffHandOver, handOverLive } from "./hand-over.ts";
import { handOverGuestLive, type LiveHandOverControl } from "./hand-over-guest.ts";
import type { TransferAddress } from "./transfer-address.ts";

const TO = {
  ...{ host: "127.0.0.1", memoryPort: 1, disksPort: null, key: null, display: null, cpuModel: null, interfaces: "" },
  ...{ hasVolumeBus: false },
} as unknown as TransferAddress;
const ORDER = {
  ...{ host: "h1", serverUuid: "s", attemptId: "task/h1", toHost: "h2", toAttemptId: "task/h2", live: true },
  ...{ listensAt: "", orderId: "o" },
};
const HANDED = { attemptId: "task/h2", isDone: false, wasRunning: true };
const control = (signal = new AbortController().signal) => ({
  ...{ signal, onProgress: () => undefined },
  ...{ force: false, isContinued: false, bytesPerSecond: 1 },
});

interface Moment {
  /** QEMU's state of the transfer of the memory. */
  readonly status: string;
  /** QEMU's state of the guest. */
  readonly state: string;
}

/**
 * A QEMU that transfers its guest's memory. Its moments follow each other: each look at the transfer and each look at the guest is at the next one. It is told by
 * `migrate-continue` to pass the switch-over, and refuses this when it has passed it. It does not answer the command that is `silent`, and refuses the one that needs `locked` disks. An `absent` one has ended. The connection to it is lost
 * at the moment of a transfer that is `lost`. It copies disks by the jobs `copied`.
 */
function qemuOf(
  moments: readonly Moment[],
  handedTo: GuestRecord["handedTo"] = null,
  {
    silent,
    locked,
    copied = [],
  }: { readonly silent?: string; readonly locked?: string; readonly copied?: readonly object[] } = {},
) {
  const left = [...moments];
  const commands: string[] = [];
  const record = { handedTo, machine: { disks: [] } };
  const now = (): Moment => (left.length > 1 ? (left.shift() as Moment) : (left[0] as Moment));
  const execute = async (command: string): Promise<unknown> => {
    commands.push(command);
    if (left[0]?.state === "absent") throw new QemuError("state", "the guest's QEMU is gone");
    if (command === silent) throw new QmpError("silent", "QEMU does not answer");
    if (command === locked) throw new QmpError("refused", 'cont: Failed to get "write" lock');
    switch (command) {
      case "query-migrate": {
        const { status } = now();
        if (status === "lost") throw new QmpError("lost", "the connection to QEMU is lost");
        return { status, ...(left.length === 1 && { downtime: 7 }) };
      }
      case "migrate-continue":
        if (left[0]?.status === "pre-switchover") return {};
        throw new QmpError("refused", "migrate-continue: Migration not in expected state: device");
      case "query-block-jobs":
        return commands.includes("block-job-cancel") ? [] : copied;
      case "query-named-block-nodes":
      case "query-yank":
        return [];
      default:
        return {};
    }
  };
  const state = async () => now().state;
  const change = async (changes: object) => void Object.assign(record, changes);
  return { guest: { execute, state, change, record, process: () => null } as unknown as QemuGuest, record, commands };
}

const at = (status: string, state: string): Moment => ({ status, state });

/** Hands the guest over by an order, maybe a forced one. */
function handOver({ guest }: Pick<ReturnType<typeof qemuOf>, "guest">, force = false) {
  const calledOff = new CalledOffMoves(new ManualClock(), () => Promise.reject(new Error("the grace is not over")));
  const halted: number[] = [];
  const onHandedOver: LiveHandOverControl["onHandedOver"] = (_, { haltedMs }) => halted.push(haltedMs);
  const live = { ...control(), calledOff, power: {}, onHandedOver } as unknown as LiveHandOverControl;
  return { calledOff, halted, moved: handOverGuestLive(guest, { ...ORDER, force }, TO, live) };
}

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

test("a move that is called off while QEMU answers that it waits at the switch-over does not pass it", async () => {
  const order = new AbortController();
  const { guest, commands } = qemuOf([at("none", "paused"), at("pre-switchover", "finish-migrate")]);
  const onProgress = () => order.abort(new Error("the move was called off"));
  await expect(handOverLive(guest, TO, { ...control(order.signal), onProgress })).rejects.toThrow("was called off");
  expect(commands).not.toContain("migrate-continue");
});

test("a move that is called off while QEMU shows its copied disks does not pass its switch-over, and the disks are copied on", async () => {
  const order = new AbortController();
  const copied = [{ device: "move-disk0", status: "ready", ready: true }];
  const { guest, commands } = qemuOf([at("pre-switchover", "finish-migrate")], HANDED, { copied });
  Object.assign(guest.record.machine, { disks: [{ node: "disk0", file: "disk0.qcow2" }] });
  const execute = guest.execute.bind(guest);
  guest.execute = (async (...asked: Parameters<typeof execute>) => {
    if (asked[0] === "query-block-jobs") order.abort(new Error("the move was called off"));
    return execute(...asked);
  }) as typeof execute;
  const to = { ...TO, disksPort: 2, roles: null };
  await expect(handOverLive(guest, to, { ...control(order.signal), isContinued: true })).rejects.toThrow(
    "was called off",
  );
  expect(commands).not.toContain("migrate-continue");
  expect(commands).not.toContain("block-job-cancel");
});

test.each([
  ["a job that copies another disk", [{ device: "move-disk1", status: "ready", ready: true }]],
  ["a job that has not copied it yet", [{ device: "move-disk0", status: "running", ready: false }]],
])(
  "a transfer does not pass its switch-over with %s: the destination would lack what the guest has written",
  async (_, copied) => {
    const { guest, commands } = qemuOf([at("pre-switchover", "finish-migrate")], HANDED, { copied });
    Object.assign(guest.record.machine, { disks: [{ node: "disk0", file: "disk0.qcow2" }] });
    const to = { ...TO, disksPort: 2, roles: null };
    await expect(handOverLive(guest, to, { ...control(), isContinued: true })).rejects.toThrow(
      "of the guest's disk0 has ended",
    );
    expect(commands).not.toContain("migrate-continue");
  },
);

test("a transfer whose disks are copied passes its switch-over, also if QEMU shows that only later", async () => {
  const { guest, commands } = qemuOf(
    [
      ...[at("pre-switchover", "finish-migrate"), at("pre-switchover", "finish-migrate")],
      ...[at("device", "finish-migrate"), at("completed", "postmigrate")],
    ],
    HANDED,
    { copied: [{ device: "move-disk0", status: "ready", ready: true }] },
  );
  Object.assign(guest.record.machine, { disks: [{ node: "disk0", file: "disk0.qcow2" }] });
  expect(await handOverLive(guest, { ...TO, disksPort: 2, roles: null }, { ...control(), isContinued: true })).toBe(7);
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

test("the forced form of a move that QEMU is completing transfers nothing again", async () => {
  const it = qemuOf(
    [at("completed", "finish-migrate"), at("completed", "finish-migrate"), at("completed", "postmigrate")],
    HANDED,
  );
  await handOver(it, true).moved;
  expect(it.record.handedTo).toEqual({ ...HANDED, isDone: true });
  expect(it.commands).not.toContain("migrate");
  expect(it.commands).not.toContain("stop");
});

test("the forced form of a move that is completed while the agent looks at it transfers nothing again", async () => {
  const it = qemuOf([at("device", "finish-migrate"), at("completed", "postmigrate")], HANDED);
  await handOver(it, true).moved;
  expect(it.record.handedTo).toEqual({ ...HANDED, isDone: true });
  expect(it.commands).not.toContain("migrate");
});

test.each([
  ["right after it was completed", [at("completed", "finish-migrate"), at("completed", "absent")]],
  ["after the guest was halted for good", [at("completed", "postmigrate"), at("completed", "absent")]],
] as const)("a move whose QEMU ends %s is completed, since the destination has confirmed it", async (_, moments) => {
  const it = qemuOf([at("none", "running"), at("active", "running"), at("device", "finish-migrate"), ...moments]);
  await handOver(it).moved;
  expect(it.record.handedTo).toEqual({ ...HANDED, isDone: true });
});

test("a move that is completed while the agent has lost the connection to QEMU is done", async () => {
  const it = qemuOf([
    ...[at("none", "running"), at("active", "running"), at("pre-switchover", "finish-migrate")],
    ...[at("pre-switchover", "finish-migrate"), at("device", "finish-migrate"), at("lost", "finish-migrate")],
    at("completed", "postmigrate"),
  ]);
  const { halted, moved } = handOver(it);
  await moved;
  expect([it.record.handedTo, halted]).toEqual([{ ...HANDED, isDone: true }, [7]]);
});

test("a move whose QEMU ends before the transfer was seen to be completed fails", async () => {
  const it = qemuOf([
    ...[at("none", "running"), at("none", "running"), at("active", "running"), at("device", "finish-migrate")],
    at("device", "absent"),
  ]);
  await expect(handOver(it).moved).rejects.toThrow("QEMU is gone");
  expect(it.record.handedTo).toEqual(HANDED);
});

test("a guest that runs although its transfer was completed is not taken for one that was handed over", async () => {
  const it = qemuOf([at("running", "running"), at("none", "running"), at("completed", "running")]);
  await expect(handOver(it).moved).rejects.toThrow("is not halted since (running)");
  expect(it.record.handedTo).toEqual(null);
});

test("a transfer that broke off and cannot be called off is called off again by the guest's next order", async () => {
  const it = qemuOf([at("none", "running"), at("active", "running"), at("failed", "finish-migrate")], null, {
    silent: "query-yank",
  });
  const { calledOff, moved } = handOver(it);
  await expect(moved).rejects.toThrow("broke off");
  expect(it.record.handedTo).toEqual(HANDED);
  // The copying of the disks may have ended, so the forced form of the order must not continue this transfer.
  expect(calledOff.takeUp(ORDER, ORDER.toAttemptId)).toBe(false);
});

test.each([
  ["paused", false, ["cont", "stop"]],
  ["halted by a forced move", true, ["cont"]],
] as const)(
  "a guest that was %s is so again when its move was called off, though QEMU says that it was transferred",
  async (_, wasRunning, orders) => {
    const it = qemuOf([at("cancelled", "postmigrate")], { ...HANDED, wasRunning });
    await callOffHandOver(it.guest);
    expect(it.commands.filter((command) => ["cont", "stop"].includes(command))).toEqual(orders);
    expect(it.record.handedTo).toBeNull();
  },
);

test("a move that broke off is not completed when its order is repeated, though QEMU says of the guest that it was transferred", async () => {
  const it = qemuOf([at("failed", "postmigrate")], { ...HANDED, wasRunning: false });
  await expect(handOver(it).moved).rejects.toThrow("broke off");
  expect(it.record.handedTo).toBeNull();
});

test("a paused guest whose disks the destination has taken already is left to the next order when its move is called off", async () => {
  const handedTo = { ...HANDED, wasRunning: false };
  const it = qemuOf([at("cancelled", "postmigrate")], handedTo, { locked: "cont" });
  await callOffHandOver(it.guest);
  expect(it.record.handedTo).toEqual(handedTo);
  expect(it.commands).not.toContain("stop");
});

test("a paused guest that went on when its move was called off, and could not be paused again, is paused by the next attempt", async () => {
  const it = qemuOf([at("cancelled", "running")], { ...HANDED, wasRunning: false });
  await callOffHandOver(it.guest);
  expect(it.commands).toContain("stop");
  expect(it.record.handedTo).toBeNull();
});

test("a guest whose QEMU ends while its move is called off is left to the next order, since the destination may have everything", async () => {
  const it = qemuOf([at("active", "running"), at("cancelled", "running"), at("cancelled", "absent")], HANDED);
  expect(await callOffHandOver(it.guest)).toEqual({ kind: "ended" });
  expect(it.record.handedTo).toEqual(HANDED);
});
