import { describe, expect, test } from "vitest";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { type PowerControl, pauseGuest, startGuest, unpauseGuest } from "./guest-power.ts";
import { suspendGuest } from "./suspend-guest.ts";

const NEVER = { signal: new AbortController().signal, volumes: null } as unknown as PowerControl;

interface Faults {
  /** The commands that QEMU does not carry out, with the error. */
  readonly fails?: Readonly<Record<string, Error>>;
  /** The error of QEMU's job that saves the memory. */
  readonly saveFails?: string;
  /** How many changes of the record succeed. The next one fails after the file has got it. */
  readonly records?: number;
  /** How many further changes are lost. */
  readonly losses?: number;
}

/** A guest with a QEMU that halts it, saves its memory and lets it go on, apart from its faults. */
function guestIn(
  state: "running" | "paused",
  { fails = {}, saveFails, records = 9, losses = 0 }: Faults = {},
  isSaving?: true,
) {
  let record: GuestRecord = guestRecord({ hasRun: true, runningIn: "boot", isSaving });
  /** What the next agent reads. */
  let stored = record;
  let left = records;
  let isRecordUnsure = false;
  let power: string = state;
  const jobs = new Map<string, string | undefined>();
  const execute = async (command: string, args: { readonly id?: string; readonly "job-id"?: string } = {}) => {
    if (fails[command] !== undefined) throw fails[command];
    if (command === "stop") power = "paused";
    if (command === "cont") power = "running";
    if (command === "query-block") return [];
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
      isRecordUnsure = left < 0 && left >= -1 - losses;
      if (!isRecordUnsure || left === -1) stored = { ...record, ...changes };
      if (isRecordUnsure) throw new Error("no space left on device");
      record = stored;
    },
    get isRecordUnsure() {
      return isRecordUnsure;
    },
    state: async () => power,
    process: () => null,
    pin: async () => {},
    execute,
    end: async () => {
      power = "absent";
    },
  };
  /** QEMU carries out all commands from now on. */
  const mend = () => {
    for (const command of Object.keys(fails)) delete (fails as Record<string, Error>)[command];
  };
  return {
    ...{ guest: guest as unknown as QemuGuest, power: () => power, record: () => record, stored: () => stored },
    mend,
  };
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

const GO_ON = { unpause: unpauseGuest, start: startGuest };
const isMarked = ({ isSuspended, isSaving }: GuestRecord) => isSuspended || isSaving === true;

describe.each(["unpause", "start"] as const)(
  "a guest that could not be suspended and that its owner lets go on (%s)",
  (verb) => {
    test.each(["running", "paused"] as const)(
      "is not taken for a suspended one by the next agent, whose file says so (it was %s)",
      async (before) => {
        // The file has got the record that says so, and no later one.
        const { guest, power, stored } = guestIn(before, { records: before === "running" ? 1 : 0, losses: 1 });
        await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space left on device");
        expect([power(), stored().isSuspended]).toEqual(["paused", true]);
        await pauseGuest(guest, NEVER);
        expect(isMarked(stored())).toBe(false);
        await GO_ON[verb](guest, NEVER);
        expect([power(), isMarked(stored())]).toEqual(["running", false]);
      },
    );

    test("also without a pause, and stays halted while its record cannot be written", async () => {
      const { guest, power, stored } = guestIn("paused", { records: 0, losses: 2 });
      await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space left on device");
      await expect(GO_ON[verb](guest, NEVER)).rejects.toThrow("no space left on device");
      expect([power(), stored().isSuspended]).toEqual(["paused", true]);
      await GO_ON[verb](guest, NEVER);
      expect([power(), isMarked(stored())]).toEqual(["running", false]);
    });
  },
);

test("a paused guest is found paused by the next agent when its record, which said that it is suspended, could not be written entirely", async () => {
  const { guest, power, stored } = guestIn("paused", { records: 0 });
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space left on device");
  expect([power(), isMarked(stored())]).toEqual(["paused", false]);
});

test("a guest whose QEMU did not answer when it should go on is an ordinary guest again after its owner has let it go on", async () => {
  const silent = new QmpError("silent", "QEMU did not answer");
  const { guest, power, record, mend } = guestIn("running", { saveFails: "no space", fails: { cont: silent } });
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space");
  mend();
  await unpauseGuest(guest, NEVER);
  expect([power(), record().isSaving]).toEqual(["running", undefined]);
});

test("a guest that its owner has paused since stays paused when it cannot be suspended", async () => {
  const silent = new QmpError("silent", "QEMU did not answer");
  const { guest, power, mend } = guestIn("running", { saveFails: "no space", fails: { cont: silent } });
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space");
  mend();
  await pauseGuest(guest, NEVER);
  await expect(suspendGuest(guest, NEVER)).rejects.toThrow("no space");
  expect(power()).toBe("paused");
});

test("a paused guest whose record says that it is suspended, since its agent died before QEMU was ended, is recorded before it goes on", async () => {
  const { guest, power, stored } = guestIn("paused");
  await guest.change({ isSuspended: true });
  await unpauseGuest(guest, NEVER);
  expect([power(), isMarked(stored())]).toEqual(["running", false]);
});
