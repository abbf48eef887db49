import type { Duplex } from "node:stream";
import type { PowerVerb, VolumeStep } from "../../core/agent/power-verbs.ts";
import { runsNow } from "../../core/agent/runs-now.ts";
import type { TransferProgress } from "../../core/agent/transfer-progress.ts";
import { MULTIATTACH_TRAIT } from "../../core/scheduling/request/asked.ts";
import { parseAttemptId } from "../../core/tasks/attempt-id.ts";
import type { RescueImage, ServerVolume, VolumeFile } from "../../proto/gen/berth/shared.ts";
import type {
  AdoptedGuest,
  Driver,
  DriverCapability,
  FoundPower,
  HandOffOrder,
  HostedGuest,
  PrepareControl,
  PrepareOrder,
  PrepareOutcome,
} from "./driver.ts";
import { FakeConsoles } from "./fake-consoles.ts";
import { allPorts, devicesOf, type FakeInterfaces, idsOf, portsOf, pretendedDiagnostics } from "./fake-devices.ts";
import type { FakeDriverOptions } from "./fake-driver-options.ts";
import { failureOf } from "./fake-failure.ts";
import { type FakeGuest, hostedAmong, type StoredGuest, shownGuest } from "./fake-guest.ts";
import { pauseFor } from "./fake-pause.ts";
import { BOOTED_FROM, type FakePower, POWER_AFTER, REFUSED_IN_RESCUE, withoutPower } from "./fake-power.ts";
import { progressAt } from "./fake-progress.ts";
import { replacedAfter, replacementsWith, replacementsWithout } from "./fake-replacements.ts";
import {
  type FailingCall,
  type FakeOutcome,
  type FakeScript,
  fakeOutcomeOf,
  type SlowCall,
  scriptOf,
} from "./fake-script.ts";
import {
  type FakeFiles,
  type FakeShare,
  filesOfVolumes,
  filesWanted,
  filesWithout,
  NO_SHARE,
  snapshotted,
} from "./fake-volume-files.ts";
import type { GuestName } from "./journal.ts";
import { leftBuild } from "./left-build.ts";

/** A driver whose guests are entries of a map, and whose behaviour follows a script (see FakeScript). */
export class FakeDriver implements Driver {
  readonly capabilities: ReadonlySet<DriverCapability> = new Set([
    ...["suspend", "live-migrate", "snapshot", "rescue", "inject-nmi", "volumes", "change-volumes"],
    // Its guests boot from no image, so there is no signature that could be wrong.
    ...["display", "interfaces", "trusted-certs", "serial-console", "volume-snapshots"],
  ] as const);
  /** Tests and simulations give hosts the other traits that they need in the hosts' own configuration. */
  readonly traits = [MULTIATTACH_TRAIT];
  readonly pinningOf = (): null => null;
  readonly measure = async (name: GuestName) => pretendedDiagnostics(this.#guests.get(keyOf(name)));
  readonly #options: FakeDriverOptions;
  /** The guests, by host and attempt id. */
  readonly #guests = new Map<string, StoredGuest>();
  /** Scripts from servers' metadata, by guest. They override the host's script as long as the agent lives. */
  readonly #ownScripts = new Map<string, FakeScript>();
  readonly #buildsOfHost = new Map<string, number>();
  readonly #destroyFailures = new Map<string, number>();
  readonly #orderFailures = new Map<string, number>();
  readonly #images = new Set<string>();
  readonly #consoles = new FakeConsoles();
  /** How often each guest has begun to run. It distinguishes a run that a script is to end from a later one. */
  readonly #runs = new Map<string, number>();
  #onChanged: (guest: GuestName) => void = () => {};

  constructor(options: FakeDriverOptions) {
    this.#options = options;
  }

  watch(onChanged: (guest: GuestName) => void): void {
    this.#onChanged = onChanged;
  }

  /** Ends a guest without an order, as when its owner shuts it down from inside. Returns false if it does not run. */
  endGuest(name: GuestName, by: "shut-down" | "crashed"): boolean {
    const found = this.#guests.get(keyOf(name));
    const canEnd = runsNow(found?.power ?? "missing") || (found?.power === "paused" && by === "crashed");
    if (found === undefined || !canEnd) return false;
    this.#guests.set(keyOf(name), { ...found, power: by, endedAtMs: this.#options.clock.monotonic() });
    this.#consoles.end(name);
    this.#onChanged(name);
    return true;
  }

  /** The guests that really exist, for an auditor. They include guests that the agent does not know. */
  guests(): FakeGuest[] {
    const nowMs = this.#options.clock.monotonic();
    return [...this.#guests.values()].map((guest) => shownGuest(guest, nowMs));
  }

  /** Stops every guest, as when the hosts lose their power. */
  losePower(): void {
    for (const guest of this.#guests.values()) this.#setPower(guest, withoutPower(guest.power));
  }

  async hostedGuests(hosts: ReadonlySet<string>): Promise<readonly HostedGuest[]> {
    return hostedAmong(this.#guests.values(), hosts);
  }

  async adopt(guests: readonly AdoptedGuest[], lost: readonly GuestName[] = []): Promise<void> {
    for (const guest of guests) {
      const { host, serverUuid, attemptId, state } = guest;
      const isDown = this.#options.scripts.get(host)?.loses_power === true;
      const { files = {}, listensAt, power: present = state } = this.#guests.get(keyOf(guest)) ?? {};
      const power = present === "prepared" ? "stopped" : isDown ? withoutPower(present) : present;
      const kept = { files, ...(state === "prepared" ? listensAt !== undefined && { listensAt } : { hasRun: true }) };
      this.#guests.set(keyOf(guest), { host, serverUuid, attemptId, power, volumes: idsOf(guest.volumes), ...kept });
      this.#options.nodes?.powered(guest, runsNow(power));
    }
    this.#options.nodes?.adopt(guests, lost);
  }

  async powersOf(guests: readonly GuestName[]): Promise<readonly FoundPower[]> {
    return guests.map((guest) => this.#guests.get(keyOf(guest))?.power ?? "missing");
  }

  async prepare(order: PrepareOrder, control: PrepareControl): Promise<PrepareOutcome> {
    const { host, serverUuid, attemptId } = order;
    let own: FakeScript | null;
    try {
      own = this.#options.byMetadata ? scriptOf(order.server.metadata) : null;
    } catch (error) {
      return { kind: "failed", failure: "abort", reason: (error as Error).message };
    }
    if (this.#options.nodes?.isClosed) return leftBuild(control.signal);
    const refusal = this.#options.nodes?.take(order) ?? null;
    if (refusal !== null) return { kind: "failed", failure: "reschedule", reason: refusal };
    if (own !== null) this.#ownScripts.set(keyOf(order), own);
    const script = this.#scriptFor(order);
    const nth = own === null ? this.#countBuild(host) : (parseAttemptId(attemptId)?.selection ?? 0);
    const outcome = fakeOutcomeOf(script, { nth, attemptId, seed: this.#options.seed });
    if ((script.destroy_failures ?? 0) > 0) this.#destroyFailures.set(keyOf(order), script.destroy_failures ?? 0);
    await this.#spend(script, outcome, control);
    const listening = order.movedFrom === null ? {} : { listensAt: addressOf(host, attemptId) };
    if (outcome === "prepared" || outcome === "lie") {
      this.#guests.set(keyOf(order), {
        ...{ host, serverUuid, attemptId, power: "stopped", ...devicesOf(order), ...listening },
        files: filesOfVolumes(order.server.volumes, this.#share),
      });
    }
    return outcome === "prepared" ? { kind: "prepared", ...listening } : failureOf(outcome, script);
  }

  async start(guest: GuestName, signal: AbortSignal): Promise<void> {
    await this.#take(guest, "start_ms", signal);
    if (this.#failsNow(guest, "start_failures")) throw new Error("the guest's firmware is broken");
    this.#setPower(guest, "running");
  }

  async power(guest: GuestName, verb: PowerVerb, signal: AbortSignal, wanted?: FakeInterfaces | null): Promise<void> {
    await this.#take(guest, "power_ms", signal);
    if (this.#failsNow(guest, "power_failures")) throw new Error(`the hypervisor refused to ${verb} the guest`);
    const { power } = this.#guests.get(keyOf(guest)) ?? { power: "missing" };
    if (REFUSED_IN_RESCUE.includes(verb) && power === "rescued") throw new Error("the guest is in rescue mode");
    if (verb === "inject-nmi" && !runsNow(power) && power !== "paused") throw new Error("the guest does not run");
    if (verb === "reboot" || verb === "hard-reboot") this.#consoles.boot(guest);
    if (verb === "hard-reboot" && wanted != null) this.#change(guest, () => ({ interfaces: portsOf(wanted) }));
    if (verb === "hard-reboot") this.#setPower(guest, "stopped");
    if (verb !== "inject-nmi") this.#setPower(guest, POWER_AFTER[verb] ?? "running");
  }

  async rescue(guest: GuestName, _: RescueImage, signal: AbortSignal): Promise<void> {
    await this.#take(guest, "rescue_ms", signal);
    if (this.#failsNow(guest, "rescue_failures")) {
      this.#setPower(guest, "stopped");
      throw new Error("the rescue image is corrupt");
    }
    if (this.#guests.get(keyOf(guest))?.power !== "rescued") this.#consoles.boot(guest);
    this.#setPower(guest, "rescued");
  }

  async snapshot(guest: GuestName, imageId: string, signal: AbortSignal): Promise<void> {
    const found = this.#guests.get(keyOf(guest));
    if (found === undefined) throw new Error("there is no such guest");
    if (found.power === "rescued") throw new Error("the guest is in rescue mode");
    await this.#take(guest, "snapshot_ms", signal);
    if (this.#failsNow(guest, "snapshot_failures")) throw new Error("the image store is full");
    this.#images.add(imageId);
  }

  async attachVolume(guest: GuestName, volume: ServerVolume, signal: AbortSignal): Promise<void> {
    await this.#take(guest, "attach_ms", signal);
    this.#change(guest, ({ volumes = [], files = {} }) => ({
      volumes: [...new Set([...volumes, volume.volumeId])].sort(),
      files: volumes.includes(volume.volumeId) ? files : { ...files, ...filesOfVolumes([volume], this.#share) },
    }));
    if (this.#failsNow(guest, "attach_failures")) throw new Error("the guest has no free slot");
  }

  async detachVolume(guest: GuestName, volumeId: string, signal: AbortSignal): Promise<void> {
    await this.#take(guest, "detach_ms", signal);
    if (this.#failsNow(guest, "detach_failures")) throw new Error("the guest does not release the volume");
    this.#change(guest, ({ volumes = [], files = {}, replacements, nextFiles }) => ({
      volumes: volumes.filter((id) => id !== volumeId),
      files: filesWithout(files, volumeId),
      ...(replacements && { replacements: replacementsWithout(replacements, volumeId) }),
      ...(nextFiles && { nextFiles: filesWithout(nextFiles, volumeId) }),
    }));
  }

  async changeVolume(guest: GuestName, volume: ServerVolume, step: VolumeStep, signal: AbortSignal): Promise<void> {
    await this.#take(guest, "replace_ms", signal);
    if (step !== "keep" && this.#failsNow(guest, "replace_failures")) throw new Error("the other volume is broken");
    this.#change(guest, (found) => replacedAfter(found, volume, step, this.#share));
  }

  async snapshotVolume(
    guest: GuestName,
    volume: ServerVolume,
    order: Parameters<typeof snapshotted>[2],
    signal: AbortSignal,
  ): Promise<void> {
    await this.#take(guest, "replace_ms", signal);
    if (order.step !== "return" && this.#failsNow(guest, "replace_failures")) throw new Error("the storage is broken");
    this.#change(guest, (found) => snapshotted(found, volume, order, this.#share));
  }

  async useFiles(guest: GuestName, files: readonly VolumeFile[]): Promise<void> {
    const found = this.#guests.get(keyOf(guest));
    if (found === undefined) throw new Error("there is no such guest");
    const next = filesWanted(found.files ?? {}, files, this.#share);
    this.#guests.set(keyOf(guest), { ...found, nextFiles: next });
  }

  async setInterfaces(guest: GuestName, interfaces: FakeInterfaces, signal: AbortSignal): Promise<void> {
    await this.#take(guest, "interfaces_ms", signal);
    if (this.#failsNow(guest, "interfaces_failures")) throw new Error("the guest does not release the interface");
    this.#change(guest, () => ({ interfaces: portsOf(interfaces) }));
  }

  addInterfaces(guest: GuestName, interfaces: FakeInterfaces, signal: AbortSignal): Promise<void> {
    const present = this.#guests.get(keyOf(guest))?.interfaces ?? [];
    return this.setInterfaces(guest, allPorts(present, interfaces), signal);
  }

  async changePassword(guest: GuestName): Promise<void> {
    if (!runsNow(this.#guests.get(keyOf(guest))?.power ?? "missing")) throw new Error("the guest does not run");
  }

  #change(guest: GuestName, change: (found: StoredGuest) => Partial<StoredGuest>): void {
    const found = this.#guests.get(keyOf(guest));
    if (found === undefined) throw new Error("there is no such guest");
    const changed = { ...found, ...change(found) };
    this.#guests.set(keyOf(guest), changed);
    if (runsNow(found.power)) this.#open(guest, found.files, changed.files);
  }

  /** Tells the storage of the files to which a guest that runs writes from now on. */
  #open({ serverUuid }: GuestName, before: FakeFiles = {}, now: FakeFiles = {}): void {
    for (const [id, chain] of Object.entries(now))
      if (before[id]?.[0] !== chain[0]) this.#share.opened(chain, serverUuid);
  }

  get #share(): FakeShare {
    return this.#options.share ?? NO_SHARE;
  }

  /** The ids of the images that were made from guests. */
  images(): readonly string[] {
    return [...this.#images];
  }

  async handOff(
    order: HandOffOrder,
    signal: AbortSignal,
    onProgress: (progress: TransferProgress) => void = () => {},
  ): Promise<void> {
    const { host, serverUuid, attemptId, live, force } = order;
    const name = { host, serverUuid, attemptId };
    if (!this.#guests.has(keyOf(name))) throw new Error("there is no such guest");
    if (order.listensAt !== addressOf(order.toHost, order.toAttemptId))
      throw new Error(`no guest of ${order.toHost} listens at "${order.listensAt}"`);
    if (live && this.#guests.get(keyOf(name))?.power === "rescued") throw new Error("the guest is in rescue mode");
    if (!live) this.#setPower(name, "stopped");
    for (let part = 0; part < HAND_OFF_PARTS && !force; part += 1) {
      onProgress(progressAt(part / HAND_OFF_PARTS, live));
      await this.#take(name, "hand_off_ms", signal, 1 / HAND_OFF_PARTS);
    }
    onProgress(progressAt(1, live));
    if (this.#failsNow(name, "hand_off_failures")) throw new Error("the copy was interrupted");
    this.#setPower(name, "stopped");
  }

  /** Waits for the time that the guest's script sets for such a call. */
  async #take(guest: GuestName, of: SlowCall, signal: AbortSignal, share = 1) {
    const durationMs = (this.#scriptFor(guest)[of] ?? 0) * share;
    if (durationMs > 0) await pauseFor(durationMs, signal, this.#options.clock);
  }

  #setPower(name: GuestName, power: FakePower): void {
    const found = this.#guests.get(keyOf(name));
    if (found === undefined) throw new Error("there is no such guest");
    const { endedAtMs: _, nextFiles, ...kept } = found;
    const begins = runsNow(power) && !runsNow(found.power) && found.power !== "paused";
    const files = begins ? (nextFiles ?? kept.files) : kept.files;
    const next = { ...(nextFiles && !begins && { nextFiles }), ...replacementsWith(power, kept) };
    const ran = power === "stopped" ? {} : { hasRun: true, listensAt: undefined };
    this.#guests.set(keyOf(name), { ...kept, power, ...(files && { files }), ...next, ...ran });
    if (begins) this.#open(name, {}, files);
    this.#options.nodes?.powered(name, runsNow(power));
    if (!runsNow(power) && power !== "paused") this.#consoles.end(name);
    if (power === "running" && BOOTED_FROM.includes(found.power)) this.#consoles.boot(name);
    if (power === "running" && found.power !== "running") this.#beginRun(name);
  }

  /** Ends the guest's run later, if its script says so. */
  #beginRun(name: GuestName): void {
    const nth = (this.#runs.get(keyOf(name)) ?? 0) + 1;
    this.#runs.set(keyOf(name), nth);
    const { ends_after_ms, ends_by = "shut-down", ends_first = 1 } = this.#scriptFor(name);
    if (ends_after_ms === undefined || nth > ends_first) return;
    this.#options.clock.setTimer(ends_after_ms, () => {
      if (this.#runs.get(keyOf(name)) === nth) this.endGuest(name, ends_by);
    });
  }

  #scriptFor(guest: GuestName): FakeScript {
    return this.#ownScripts.get(keyOf(guest)) ?? this.#options.scripts.get(guest.host) ?? {};
  }

  /** Whether the script lets this order fail. A script says how many of a guest's first orders of each kind fail. */
  #failsNow(guest: GuestName, of: FailingCall): boolean {
    const key = `${of} ${keyOf(guest)}`;
    const before = this.#orderFailures.get(key) ?? 0;
    if (before >= (this.#scriptFor(guest)[of] ?? 0)) return false;
    this.#orderFailures.set(key, before + 1);
    return true;
  }

  async readConsole(guest: GuestName, bytesMax: number): Promise<Uint8Array | null> {
    return this.#guests.has(keyOf(guest)) ? this.#consoles.read(guest, bytesMax) : null;
  }

  async openConsole(guest: GuestName): Promise<Duplex> {
    if (!this.#guests.has(keyOf(guest))) throw new Error("there is no such guest");
    return this.#consoles.open(guest);
  }

  hasDisplay(guest: GuestName): boolean {
    return this.#guests.has(keyOf(guest));
  }

  async openDisplay(guest: GuestName): Promise<Duplex> {
    if (!this.#guests.has(keyOf(guest))) throw new Error("there is no such guest");
    return this.#consoles.openDisplay(guest);
  }

  async destroy(guest: GuestName, signal: AbortSignal): Promise<void> {
    await this.#take(guest, "destroy_ms", signal);
    const failures = this.#destroyFailures.get(keyOf(guest)) ?? 0;
    if (failures > 0 && this.#guests.has(keyOf(guest))) {
      this.#destroyFailures.set(keyOf(guest), failures - 1);
      throw new Error("the device is busy");
    }
    this.#destroyFailures.delete(keyOf(guest));
    this.#ownScripts.delete(keyOf(guest));
    this.#runs.delete(keyOf(guest));
    this.#consoles.forget(guest);
    this.#guests.delete(keyOf(guest));
    this.#options.nodes?.release(guest);
  }

  #countBuild(host: string): number {
    const nth = this.#buildsOfHost.get(host) ?? 0;
    this.#buildsOfHost.set(host, nth + 1);
    return nth;
  }

  /** Waits for the duration of the build. Rejects when the signal is raised. */
  async #spend(script: FakeScript, outcome: FakeOutcome, control: PrepareControl): Promise<void> {
    const { clock } = this.#options;
    const durationMs = script.duration_ms ?? 0;
    const steps = script.steps ?? [];
    for (const step of steps) {
      control.onStep(step);
      await pauseFor(durationMs / (steps.length + 1), control.signal, clock);
    }
    if (outcome === "crash") this.#options.crash();
    if (outcome === "lie") this.#options.loseConnections();
    if (outcome === "hang" || outcome === "crash") await pauseFor(null, control.signal, clock);
    if (durationMs > 0) await pauseFor(durationMs / (steps.length + 1), control.signal, clock);
  }
}

/** How often a hand-over reports how far it has come. */
const HAND_OFF_PARTS = 10;
/**
 * The address at which a guest that was prepared for a move listens. Only its host's driver and the conductors that it told
 * know this.
 */
const addressOf = (host: string, attemptId: string): string => `fake://${host}/${attemptId}`;
const keyOf = (guest: GuestName): string => `${guest.host} ${guest.attemptId}`;
