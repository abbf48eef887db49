import { expect, test } from "vitest";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { deviceOf, nodesOf } from "../../../adapters/qemu/volume-plugs.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { volumeOf } from "../../../test/rigs/begin-operation.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { changeGuestVolume } from "./change-guest-volume.ts";
import { type PowerControl, pauseGuest } from "./guest-power.ts";

const OWN = volumeOf(1).volumeId;
const OTHER = volumeOf(2).volumeId;
const [OWN_NODE, OTHER_NODE] = nodesOf(OWN);
const VOLUME = { volumeId: OWN, replacedBy: OTHER, connection: "to-other" } as ServerVolume;
class AgentDied extends Error {}

/** A guest that writes to a volume, of which QEMU has a complete copy. The copying is a job of QEMU, as far as the agent sees it. */
class CopiedGuest {
  record: GuestRecord;
  /** What each of the two volumes has. */
  readonly written = { [OWN_NODE]: 0, [OTHER_NODE]: 0 };
  #used = OWN_NODE;
  #job: "ready" | "concluded" | null = "ready";
  #isHalted = false;
  /** The agent dies when it has done so many things. */
  leftToDo = Number.POSITIVE_INFINITY;
  /** The writes that the guest was told are on its disk. */
  told = 0;
  /** When the copying fails: before the agent's thing with this number. */
  failsAt = Number.POSITIVE_INFINITY;
  /** The disk of the record is full when the agent has done so many things. */
  fullAt = Number.POSITIVE_INFINITY;
  /** What QEMU was told so far. */
  readonly commands: string[] = [];
  #done = 0;

  constructor() {
    const replacement = { by: OTHER, connection: "to-other", former: "to-own", node: OTHER_NODE, isDecided: false };
    this.record = guestRecord({ volumes: [{ volumeId: OWN, target: 1, lun: 1, connection: "to-own", replacement }] });
  }

  /** QEMU writes to both while the copying goes on. */
  write(): void {
    if (this.#isHalted) return;
    this.told += 1;
    if (this.#job === "ready") this.written[OTHER_NODE] = this.told;
    this.written[this.#used] = this.told;
  }

  failCopying(): void {
    if (this.#job === "ready") this.#job = "concluded";
  }

  #count(): void {
    if (this.leftToDo <= 0) throw new AgentDied();
    this.leftToDo -= 1;
    if (this.#done === this.failsAt) this.failCopying();
    this.#done += 1;
    this.write();
  }

  async execute(command: string): Promise<unknown> {
    this.#count();
    this.commands.push(command);
    const refuse = () => {
      throw new QmpError("refused", `${command} is refused`);
    };
    switch (command) {
      case "query-jobs":
        return this.#job === null ? [] : [{ id: `replace-${OWN}`, status: this.#job }];
      case "query-block-jobs":
        return this.#job === null ? [] : [{ device: `replace-${OWN}`, status: this.#job, len: 1, offset: 1 }];
      case "job-complete":
        if (this.#job !== "ready") return refuse();
        this.#used = OTHER_NODE;
        this.#job = "concluded";
        return {};
      case "stop":
      case "cont":
        this.#isHalted = command === "stop";
        return {};
      case "block-job-cancel":
        this.#job = "concluded";
        return {};
      case "job-dismiss":
        this.#job = null;
        return {};
      case "qom-list":
        return [{ name: deviceOf(OWN) }];
      case "query-block":
        return [{ qdev: deviceOf(OWN), inserted: { "node-name": this.#used } }];
      case "query-named-block-nodes":
        return [];
      default:
        throw new Error(`nothing is known of ${command}`);
    }
  }

  async change(values: Partial<GuestRecord>): Promise<void> {
    this.#count();
    if (this.#done > this.fullAt) throw new Error("no space left on device");
    this.record = { ...this.record, ...values };
  }

  state = async () => (this.#isHalted ? "paused" : "running");

  /** What the guest's volume has at its next start, which follows from the record. */
  atNextStart(): number {
    const [place] = this.record.volumes ?? [];
    return this.written[place?.connection === "to-other" ? OTHER_NODE : OWN_NODE] ?? 0;
  }
}

const NEVER = new AbortController().signal;

async function keep(guest: CopiedGuest): Promise<boolean> {
  const control = { files: null, signal: NEVER };
  return changeGuestVolume(guest as unknown as QemuGuest, VOLUME, "keep", control).then(
    () => true,
    () => false,
  );
}

async function pivot(guest: CopiedGuest): Promise<"done" | "failed" | "died"> {
  const control = { files: new VolumeFiles({ own: null, mounts: "/mounts" }), signal: NEVER };
  try {
    await changeGuestVolume(guest as unknown as QemuGuest, VOLUME, "pivot", control);
    return "done";
  } catch (error) {
    if (error instanceof AgentDied) return "died";
    return "failed";
  }
}

test("a guest whose agent and whose QEMU die at any moment of a change over starts with all that it has written, also if its copying fails right before or right after the agent's death", async () => {
  const ends = new Set<string>();
  for (let dies = 0; dies <= 24; dies += 1)
    for (const [fails, left] of [
      ...[dies - 2, dies - 1, dies].map((one) => [one, dies] as const),
      [dies, Number.POSITIVE_INFINITY] as const,
    ]) {
      const guest = new CopiedGuest();
      guest.leftToDo = left;
      guest.failsAt = fails;
      ends.add(await pivot(guest));
      guest.failCopying();
      guest.write();
      // QEMU dies now, and the guest is started again.
      expect([left, fails, guest.atNextStart()]).toEqual([left, fails, guest.told]);
    }
  expect([...ends].sort()).toEqual(["died", "done", "failed"]);
});

test("the order is repeated by the agent's next process after a death at any moment, and the guest goes on", async () => {
  for (let dies = 0; dies <= 24; dies += 1) {
    const guest = new CopiedGuest();
    guest.leftToDo = dies;
    await pivot(guest);
    guest.leftToDo = Number.POSITIVE_INFINITY;
    expect([dies, await pivot(guest)]).toEqual([dies, "done"]);
    const before = guest.told;
    guest.write();
    expect([dies, guest.told]).toEqual([dies, before + 1]);
    expect(guest.told).toBe(guest.written[OTHER_NODE]);
    expect(guest.record.volumes).toEqual([
      { volumeId: OWN, target: 1, lun: 1, connection: "to-other", replacedBy: OTHER },
    ]);
    expect(guest.atNextStart()).toBe(guest.told);
  }
});

test("a change over that was held up by its agent's death can be called off or goes on, and so does the guest, with what it has written", async () => {
  for (let dies = 0; dies <= 24; dies += 1) {
    const guest = new CopiedGuest();
    guest.leftToDo = dies;
    await pivot(guest);
    guest.leftToDo = Number.POSITIVE_INFINITY;
    const kept = await keep(guest);
    if (!kept) await pivot(guest);
    const before = guest.told;
    guest.write();
    expect([dies, kept, guest.told]).toEqual([dies, kept, before + 1]);
    expect(guest.atNextStart()).toBe(guest.told);
    expect(guest.record.volumes?.[0]?.isHalted).toBeUndefined();
  }
});

test("a guest whose record cannot be written any longer, at any moment and after the agent's death at any earlier one, starts with all that it has written", async () => {
  for (let number = 0; number < 20; number += 1)
    for (const [dies, full] of [
      [number, number],
      [number, number + 3],
      [Number.POSITIVE_INFINITY, number],
    ] as const) {
      const guest = new CopiedGuest();
      guest.leftToDo = dies;
      guest.fullAt = full;
      await pivot(guest);
      guest.leftToDo = Number.POSITIVE_INFINITY;
      await pivot(guest);
      guest.failCopying();
      guest.write();
      expect([dies, full, guest.atNextStart()]).toEqual([dies, full, guest.told]);
    }
});

test("a guest goes on as soon as it uses the other volume, before QEMU has closed the former one", async () => {
  const guest = new CopiedGuest();
  expect(await pivot(guest)).toBe("done");
  const told = guest.commands.filter((one) => ["stop", "job-complete", "cont", "job-dismiss"].includes(one));
  expect(told).toEqual(["stop", "job-complete", "cont", "job-dismiss"]);
});

test("a guest that a user has paused after an agent's death in a change over stays paused when the order is repeated or called off", async () => {
  for (let dies = 0; dies < 20; dies += 1)
    for (const end of [keep, pivot]) {
      const guest = new CopiedGuest();
      guest.leftToDo = dies;
      await pivot(guest);
      guest.leftToDo = Number.POSITIVE_INFINITY;
      await pauseGuest(guest as unknown as QemuGuest, { signal: NEVER } as PowerControl);
      await end(guest);
      expect([dies, await guest.state()]).toEqual([dies, "paused"]);
    }
});
