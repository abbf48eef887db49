import { expect, test } from "vitest";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { suspendGuest } from "./suspend-guest.ts";

const NEVER = { signal: new AbortController().signal };

interface Faults {
  /** The commands that QEMU does not carry out, with the error. */
  readonly fails?: Readonly<Record<string, Error>>;
  /** The error of QEMU's job that saves the memory. */
  readonly saveFails?: string;
  /** How many changes of the record succeed. */
  readonly records?: number;
}

/** A guest with a QEMU that halts it, saves its memory and lets it go on, apart from its faults. */
function guestIn(state: "running" | "paused", { fails = {}, saveFails, records = 9 }: Faults = {}, isSaving?: true) {
  let record: GuestRecord = guestRecord({ hasRun: true, runningIn: "boot", isSaving });
  let left = records;
  let power: string = state;
  const jobs = new Map<string, string | undefined>();
  const execute = async (command: string, args: { readonly id?: string; readonly "job-id"?: string } = {}) => {
    if (fails[command] !== undefined) throw fails[command];
    if (command === "stop") power = "paused";
    if (command === "cont") power = "running";
    if (command === "query-jobs") return [...jobs].map(([id, error]) => ({ id, status: "concluded", error }));
    if (command === "job-dismiss") jobs.delete(args.id ?? "");
    if (args["job-id"] !== undefined) jobs.set(args["job-id"], command === "snapshot-save" ? saveFails : undefined);
    return {};
  };
  const guest = {
    get record() {
      return record;
    },
    change: async (changes: Partial<GuestRecord>) => {
      left -= 1;
      if (left === -1) throw new Error("no space left on device");
      record = { ...record, ...changes };
    },
    state: async () => power,
    process: () => null,
    execute,
    end: async () => {
      power = "absent";
    },
  };
  return { guest: guest as unknown as QemuGuest, power: () => power, record: () => record };
}

test("a guest whose memory was saved has no QEMU, and its record says that it is suspended", async () => {
  const { guest, power, record } = guestIn("running");
  await suspendGuest(guest, NEVER);
  expect([power(), record().isSuspended, record().isSaving]).toEqual(["absent", true, undefined]);
});

test.each<[string, Faults]>([
  ["its memory cannot be saved", { saveFails: "no space left on device" }],
  ["QEMU refuses to begin that", { fails: { "snapshot-save": new QmpError("refused", "no space left on device") } }],
  ["its record cannot be written", { records: 1 }],
])("a guest that runs goes on when %s, and the caller hears why it was not suspended", async (_, faults) => {
  const { guest, power, record } = guestIn("running", faults);
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space left on device");
  expect([power(), record().isSuspended, record().isSaving, record().runningIn]).toEqual([
    "running",
    false,
    undefined,
    "boot",
  ]);
});

test("a guest that was paused before stays paused when its memory cannot be saved", async () => {
  const { guest, power } = guestIn("paused", { saveFails: "no space left on device" });
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space left on device");
  expect(power()).toBe("paused");
});

test("a guest that an agent halted, which then died, goes on when the next one cannot save its memory", async () => {
  const { guest, power, record } = guestIn("paused", { saveFails: "no space left on device" }, true);
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space left on device");
  expect([power(), record().isSaving]).toEqual(["running", undefined]);
});

test("a guest whose record may say that it is suspended does not go on, since the next agent would bring back its former memory", async () => {
  const { guest, power, record } = guestIn("running", { saveFails: "no space left on device", records: 1 });
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("the guest stands still");
  expect([power(), record().isSaving]).toEqual(["paused", true]);
});

test("the caller hears both reasons when QEMU falls silent, and the next attempt still knows that the guest ran", async () => {
  const silent = new QmpError("silent", "QEMU did not answer");
  const { guest, record } = guestIn("running", { saveFails: "no space left on device", fails: { cont: silent } });
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow(/no space left on device.*QEMU did not answer/);
  expect(record().isSaving).toBe(true);
});

test("a guest that cannot be suspended, since its last transfer has not ended, runs on", async () => {
  const { guest, power, record } = guestIn("running");
  // What is left of a transfer is looked for in the process.
  const process = () => {
    throw new QemuError("state", "QEMU has not ended the guest's last transfer");
  };
  await expect(suspendGuest(Object.assign(guest, { process }), NEVER)).rejects.toThrow("last transfer");
  expect([power(), record().isSaving]).toEqual(["running", undefined]);
});
