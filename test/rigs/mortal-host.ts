import { randomUUID } from "node:crypto";
import { vi } from "vitest";
import { readGuestRecord } from "../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { QemuGuest } from "../../adapters/qemu/qemu-guest.ts";
import { findRunningQemu, type RunningQemu } from "../../adapters/qemu/running-qemu.ts";
import type { FoundPower, KeptState, PrepareOrder } from "../../services/compute-agent/driver.ts";
import type { GuestName } from "../../services/compute-agent/journal.ts";
import type { QemuDriver } from "../../services/compute-agent/qemu/qemu-driver.ts";
import { serverSpec } from "../contract/cell-fixtures.ts";
import { eventually } from "./eventually.ts";
import {
  type GuestOnDisk,
  guestsOnDisk,
  interfacesInQemu,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  quickNanoImage,
  ticksSinceBoot,
} from "./qemu-guests.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 60, withinMs: 60_000, isLasting: true };
const SERVER = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID });

/** The methods by which an agent changes a guest's files and its QEMU. Questions to QEMU change nothing, and a guest that is slow is asked more of them. */
const STEPS = ["change", "boot", "end", "execute"] as const;
const isQuestion = (args: readonly unknown[]) => /^(query-|qom-list$)/.test(String(args[0]));

/** How many steps the agent of each directory may still take before it dies. */
const lifetimes = new Map<string, { left: number; readonly takesLast: boolean; readonly onDeath: () => void }>();

/** Lets an agent die right before or right after one of its steps, whose call never ends. Undone by `vi.restoreAllMocks`. */
export function makeMortal(): void {
  const proto = QemuGuest.prototype as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  for (const step of STEPS) {
    const real = proto[step]!;
    vi.spyOn(proto, step).mockImplementation(function (this: QemuGuest, ...args: unknown[]) {
      const life = [...lifetimes].find(([path]) => this.dir.startsWith(path))?.[1];
      if (life === undefined || (step === "execute" && isQuestion(args))) return real.apply(this, args);
      life.left -= 1;
      if (life.left >= 0) return real.apply(this, args);
      // A death right before a step comes after the changes of other files between two steps, and one right after a step comes before them.
      const last = life.takesLast && life.left === -1 ? real.apply(this, args) : Promise.resolve();
      last.then(life.onDeath, life.onDeath);
      return new Promise(() => undefined);
    });
  }
}

/** A host with one guest, whose agents die and follow each other. */
export class MortalHost {
  readonly dir: QemuGuestsDir;
  name: GuestName;
  driver: QemuDriver;

  readonly #hasVolumes: boolean;
  readonly #releaseMs: number;

  /** `releaseMs` is how long the guest may need to release an interface: by default as long as a busy machine may need to run a guest at all. */
  constructor(host: string, image = quickNanoImage(), { hasVolumes = false, releaseMs = PATIENT.withinMs } = {}) {
    this.#hasVolumes = hasVolumes;
    this.#releaseMs = releaseMs;
    this.dir = makeQemuGuestsDir(image);
    this.name = { host, serverUuid: SERVER.uuid, attemptId: `${randomUUID()}/0` };
    this.driver = this.#open();
  }

  /** Prepares a guest, and resolves with the address at which it waits for another one. */
  async prepare(movedFrom: PrepareOrder["movedFrom"] = null): Promise<string> {
    this.name = { ...this.name, attemptId: `${randomUUID()}/0` };
    const order = { ...this.name, server: SERVER, movedFrom, allocation: undefined };
    const outcome = await this.driver.prepare(order, { signal: NEVER, onStep: () => undefined });
    if (outcome.kind !== "prepared") throw new Error(outcome.reason);
    return outcome.listensAt ?? "";
  }

  async boot(): Promise<void> {
    await this.prepare();
    await this.driver.start(this.name, NEVER);
    await this.ticksAfter(0);
  }

  get guest(): GuestOnDisk {
    const [guest] = guestsOnDisk(this.dir.path, this.name.serverUuid);
    if (guest === undefined) throw new Error("no guest");
    return guest;
  }

  get qemu(): RunningQemu | null {
    return findRunningQemu(this.guest.dir);
  }

  /** The guest's power. On a busy machine its QEMU may be silent for long, which says nothing. */
  async found(): Promise<FoundPower | undefined> {
    const known = async () => {
      const [power] = await this.driver.powersOf([this.name]);
      return power !== "unknown" && { power };
    };
    return (await eventually("QEMU's answer", known, PATIENT)).power;
  }

  ticksAfter(count: number): Promise<unknown> {
    return eventually("further ticks", () => this.guest.ticks.length > count, PATIENT);
  }

  /** The numbers that the guest has printed since it was booted last. */
  get ticksSinceBoot(): readonly number[] {
    return ticksSinceBoot(this.guest.ticks);
  }

  /**
   * Has the order carried out by an agent that dies at its step of this number, before or after it. Resolves with whether it had so many steps. Then the
   * guest has been adopted by the next agent, whose journal names this state.
   */
  async dieAt(
    { step, takesLast }: { readonly step: number; readonly takesLast: boolean },
    state: KeptState,
    order: (driver: QemuDriver) => Promise<void>,
  ): Promise<boolean> {
    const died = new Promise<boolean>((resolve) =>
      lifetimes.set(this.dir.path, { left: step, takesLast, onDeath: () => resolve(true) }),
    );
    const isDead = await Promise.race([died, order(this.driver).then(() => false)]);
    lifetimes.delete(this.dir.path);
    await this.replaceAgent(state);
    return isDead;
  }

  /** Lets the next agent adopt the guest, after `between`, during which no agent is connected to it. */
  async replaceAgent(state: KeptState, between: () => Promise<void> = async () => undefined): Promise<void> {
    this.driver.close();
    await between();
    this.driver = this.#open();
    await this.driver.adopt([{ ...this.name, state }]);
  }

  /** The MAC addresses of the interfaces that the guest's QEMU has, when the guest is at rest, and those in its record. */
  async interfaces(
    state: KeptState,
  ): Promise<{ readonly inQemu: readonly string[]; readonly recorded: readonly string[] }> {
    let inQemu: readonly string[] = [];
    await this.replaceAgent(state, async () => {
      // QEMU keeps the end of a network that was removed until it has freed the interface, a moment after this was taken out of the guest.
      const areEqual = async () => {
        const { macs, ends } = await interfacesInQemu(this.guest.dir);
        return ends.length === macs.length && { macs };
      };
      ({ macs: inQemu } = await eventually("as many network ends as interfaces in QEMU", areEqual, PATIENT));
    });
    const { interfaces } = readGuestRecord(this.guest.dir)?.machine ?? { interfaces: [] };
    return { inQemu, recorded: interfaces.map(({ mac }) => mac).sort() };
  }

  #open(): QemuDriver {
    const { volumes } = this.dir;
    const volumeDirs = this.#hasVolumes ? { volumeDir: volumes, volumeMounts: volumes } : {};
    return qemuDriverIn(this.dir, { shutdownMs: 10_000, releaseMs: this.#releaseMs, ...volumeDirs });
  }

  async remove(): Promise<void> {
    this.driver.close();
    await this.dir.remove();
  }
}
