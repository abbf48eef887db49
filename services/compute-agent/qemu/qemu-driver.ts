import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { existingMdevs } from "../../../adapters/qemu/host-devices.ts";
import { type DamagedCopy, ImageCache } from "../../../adapters/qemu/image-cache.ts";
import { measureGuest } from "../../../adapters/qemu/measure-guest.ts";
import { openUnixSocket } from "../../../adapters/qemu/open-unix-socket.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import { QemuGuest, removeGuestDir } from "../../../adapters/qemu/qemu-guest.ts";
import type { QmpEvent } from "../../../adapters/qemu/qmp-client.ts";
import { BYTES_PER_SECOND_MAX } from "../../../adapters/qemu/transfer.ts";
import { GUEST_FILES, type UserNetwork } from "../../../adapters/qemu/virtual-machine.ts";
import { type VolumeFiles, volumeFilesOf } from "../../../adapters/qemu/volume-files.ts";
import type { PowerVerb, VolumeStep } from "../../../core/agent/power-verbs.ts";
import { runsNow } from "../../../core/agent/runs-now.ts";
import type { TransferProgress } from "../../../core/agent/transfer-progress.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import type { MachineLayout } from "../../../core/pinning/machine-layout.ts";
import type { GuestDiagnostics, GuestInterface, RescueImage, ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { withDeadline } from "../../../runtime/deadline.ts";
import { readLogEnd } from "../../../runtime/read-log-end.ts";
import { SnapshotStore } from "../../../runtime/snapshot-store.ts";
import type {
  Driver,
  DriverCapability,
  FoundPower,
  HandOffOrder,
  KeptState,
  PrepareControl,
  PrepareOrder,
  PrepareOutcome,
} from "../driver.ts";
import { type CpuHolder, GuestPins } from "../guest-pins.ts";
import type { GuestName } from "../journal.ts";
import { messageOf } from "../message-of.ts";
import { CalledOffMoves } from "./called-off-moves.ts";
import { changeGuestVolume } from "./change-guest-volume.ts";
import { changePower } from "./change-power.ts";
import { ConsoleTrimmer } from "./console-trimmer.ts";
import { foundPowerOf } from "./found-power-of.ts";
import { foundRecord, guestDirOf, guestDirs } from "./guest-dirs.ts";
import { type FunctionsOptions, functionsOfGuests, type GuestFunctions } from "./guest-functions.ts";
import { changeInterfaces } from "./guest-interfaces.ts";
import { leaveRescue, type PowerControl, startGuest, stopGuest } from "./guest-power.ts";
import { giveVolume, takeVolume } from "./guest-volumes.ts";
import { callOffHandOver } from "./hand-over.ts";
import { handOverGuestCold, handOverGuestLive } from "./hand-over-guest.ts";
import type { MachineDefaults } from "./machine-of-server.ts";
import { prepareGuest } from "./prepare-guest.ts";
import { qemuCapabilities, qemuTraits } from "./qemu-capabilities.ts";
import { releaseDevices } from "./release-devices.ts";
import { rescueGuest } from "./rescue-guest.ts";
import { endOldSnapshot, snapshotGuest } from "./snapshot-guest.ts";
import { addressToHandOverTo } from "./transfer-address.ts";

export interface QemuDriverOptions extends FunctionsOptions {
  readonly program: string;
  /** The directory in which images are found under their ids. */
  readonly imagesPath: string;
  /** The directory of the checked copies on which guests' disks are built. */
  readonly imageCache: string;
  /** The directory of the files of volumes, which hosts share. Without it guests have no volumes. */
  readonly volumeDir?: string | undefined;
  /** The directory below which Cinder's exports are mounted. Without it guests have no volumes of Cinder. */
  readonly volumeMounts?: string | undefined;
  /** The address of this host at which prepared guests wait for others. */
  readonly transferHost: string;
  /** Whether guests that arrive here are encrypted on their way. */
  readonly hasSecretTransfers: boolean;
  /** What guests reach in QEMU's own network, from their next boot on. */
  readonly userNetwork: UserNetwork;
  /** Traits of the guests' hardware. None if absent. */
  readonly traits?: readonly string[];
  /** Whether clients may open the displays of guests that have one. */
  readonly hasDisplays: boolean;
  /** How long a guest may take to power off by itself. */
  readonly shutdownMs: number;
  /** A press of the power button is lost while a guest boots, so it is repeated at this interval. */
  readonly pressAgainMs: number;
  /** How long a destination may be silent when it is asked for the disks that it has prepared. */
  readonly disksAnswerMs?: number | undefined;
  /** The limit for the memory of a live move. When it is absent, there is no limit. */
  readonly bytesPerSecond?: number | undefined;
  /** Called for each guest that was handed over while it ran, with the time for which it had stood still by then. */
  readonly onHandedOver?: (guest: GuestName, how: { readonly haltedMs: number }) => void;
  /** Called at the start for each guest with CPUs that are no longer in its host's dedicated set. */
  readonly onStrayCpus?: (guest: CpuHolder) => void;
  /** Called for each checked copy of an image that was changed since. */
  readonly onDamaged?: (copy: DamagedCopy) => void;
  /** Called for each guest whose state cannot be found out. */
  readonly onUnknown?: (guest: GuestName, error: unknown) => void;
  /** The CPUs and NUMA nodes behind a host's resource providers, or null when they are unknown. Without it they are unknown for every host. */
  readonly layoutOf?: (host: string) => MachineLayout | null;
  /** Returns the settings that apply to every guest. Called for each build. */
  readonly defaults: () => Promise<MachineDefaults>;
}

/** A QEMU that hangs must not hide the other guests. So this is shorter than the agent's own deadline for a look at all of them. */
const LOOK_MS = 4_000;

/** A driver whose guests are virtual machines. Each runs in a QEMU process of its own, which outlives the agent. */
export class QemuDriver implements Driver {
  readonly capabilities: ReadonlySet<DriverCapability>;
  readonly traits: readonly string[];
  readonly #options: QemuDriverOptions;
  readonly #images: ImageCache;
  readonly #snapshots: SnapshotStore;
  readonly #volumes: VolumeFiles | null;
  readonly #guests = new Map<string, QemuGuest>();
  readonly #calledOff: CalledOffMoves;
  readonly #pins: GuestPins;
  readonly #functions: GuestFunctions;
  readonly #trimmer: ConsoleTrimmer;
  #onChanged: (guest: GuestName) => void = () => undefined;

  constructor(options: QemuDriverOptions) {
    this.#options = options;
    this.#volumes = volumeFilesOf(options);
    this.traits = [...qemuTraits({ hasVolumes: this.#volumes !== null }), ...(options.traits ?? [])];
    this.capabilities = qemuCapabilities({ hasVolumes: this.#volumes !== null, ...options });
    const { imagesPath: sourceDir, imageCache, onDamaged } = options;
    this.#images = new ImageCache({ sourceDir, dir: imageCache, onDamaged });
    this.#snapshots = new SnapshotStore(options.imagesPath, ".qcow2");
    this.#pins = new GuestPins({
      layoutOf: options.layoutOf,
      recorded: async () =>
        this.#records().map(({ host, serverUuid, pinning }) => ({
          ...{ host, serverUuid },
          ...{ held: pinning?.held ?? [], devices: pinning?.devices },
        })),
      existing: (source) => existingMdevs(source, options.sysroot),
    });
    const logs = () => [...this.#guests.values()].map(({ dir }) => join(dir, GUEST_FILES.consoleLog));
    this.#functions = functionsOfGuests(options);
    this.#trimmer = new ConsoleTrimmer(options.clock, logs);
    this.#calledOff = new CalledOffMoves(options.clock, (name) => this.#atRest(name));
  }

  watch(onChanged: (guest: GuestName) => void): void {
    this.#onChanged = onChanged;
  }

  async adopt(guests: readonly (GuestName & { readonly state: KeptState })[]): Promise<void> {
    await mkdir(this.#options.instancesPath, { recursive: true, mode: 0o700 });
    this.#trimmer.start();
    this.#functions.start();
    await Promise.all(guests.map((name) => this.#endOldWork(name)));
    await this.#pins.findStrays((guest) => this.#options.onStrayCpus?.(guest));
  }

  /**
   * Ends the move or the copying of the disk that the agent's last process began; a conductor repeats its order. A guest for which this cannot
   * be done now must not keep the agent from its other guests: the guest's next order tries again.
   */
  async #endOldWork(name: GuestName): Promise<void> {
    let toAttemptId: string | undefined;
    try {
      const guest = this.#find(name);
      if (guest === null) return;
      const { handedTo } = guest.record;
      if (handedTo?.isDone === false) toAttemptId = handedTo.attemptId;
      await endOldSnapshot(guest, this.#snapshots);
      if (toAttemptId !== undefined) await callOffHandOver(guest);
    } catch (error) {
      this.#options.onUnknown?.(name, error);
      if (toAttemptId !== undefined) this.#calledOff.add(name, toAttemptId);
    }
  }

  powersOf(guests: readonly GuestName[]): Promise<readonly FoundPower[]> {
    return Promise.all(
      guests.map(async (name) => {
        try {
          const guest = this.#find(name);
          if (guest === null) return "missing";
          const state = withDeadline(guest.state(), LOOK_MS, "the look at a guest's QEMU", this.#options.clock);
          return foundPowerOf(guest, await state);
        } catch (error) {
          this.#options.onUnknown?.(name, error);
          return "unknown";
        }
      }),
    );
  }

  /** The guests of these hosts that really exist, for an auditor. Other hosts may have theirs in the same directory. */
  async guests(hosts: ReadonlySet<string>): Promise<readonly (GuestName & { readonly running: boolean })[]> {
    const own = this.#records()
      .filter(({ host }) => hosts.has(host))
      .flatMap((record) => this.#find(record) ?? []);
    return Promise.all(
      own.map(async (guest) => {
        const { host, serverUuid, attemptId } = guest.record;
        return { host, serverUuid, attemptId, running: runsNow(foundPowerOf(guest, await guest.state())) };
      }),
    );
  }

  #records(): readonly GuestRecord[] {
    return guestDirs(this.#options.instancesPath).map(({ record }) => record);
  }

  /** Gives up the connections to the guests, for the agent's next process. The guests stay as they are. */
  close(): void {
    this.#trimmer.close();
    this.#functions.close();
    this.#calledOff.close();
    for (const guest of this.#guests.values()) guest.detach();
  }

  async prepare(order: PrepareOrder, control: PrepareControl): Promise<PrepareOutcome> {
    const { program, transferHost, hasSecretTransfers, sysroot, userNetwork } = this.#options;
    const functions = this.#functions;
    const dirOf = this.#dirOf;
    const onEvent = this.#heardFrom(order);
    try {
      const defaults = await this.#options.defaults();
      const [volumes, images] = [this.#volumes, this.#images];
      const options = {
        ...{
          program,
          images,
          volumes,
          defaults,
          transferHost,
          hasSecretTransfers,
          dirOf,
          sysroot,
          functions,
          userNetwork,
        },
      };
      const guest = await this.#pins.pinned(order, (pinning) =>
        prepareGuest({ ...options, pinning }, order, { ...control, onEvent }),
      );
      this.#guests.set(keyOf(order), guest);
      const { listensAt } = guest.record;
      return { kind: "prepared", ...(listensAt !== "" && { listensAt }) };
    } catch (error) {
      const isFinal = error instanceof QemuError && error.isFinal;
      return { kind: "failed", failure: isFinal ? "abort" : "reschedule", reason: messageOf(error) };
    }
  }

  async start(name: GuestName, signal: AbortSignal): Promise<void> {
    await startGuest(await this.#atRest(name), this.#power(signal));
  }

  async power(name: GuestName, verb: PowerVerb, signal: AbortSignal, interfaces?: Interfaces): Promise<void> {
    const guest = await this.#atRest(name);
    const isWanted = verb === "hard-reboot" && interfaces != null;
    const wanted = isWanted ? { interfaces, bridge: (await this.#options.defaults()).bridge } : null;
    return changePower(guest, verb, { ...this.#power(signal), wanted });
  }

  async handOff(
    order: HandOffOrder,
    signal: AbortSignal,
    onProgress: (progress: TransferProgress) => void,
  ): Promise<void> {
    const { toAttemptId } = order;
    const to = addressToHandOverTo(order);
    const isResumed = order.force && this.#calledOff.takeUp(order, toAttemptId);
    const guest = isResumed ? this.#existing(order) : await this.#atRest(order);
    const { handedTo } = guest.record;
    if (handedTo?.attemptId === toAttemptId && handedTo.isDone) return;
    await leaveRescue(guest, order);
    const power = this.#power(signal);
    const { bytesPerSecond = BYTES_PER_SECOND_MAX, onHandedOver, disksAnswerMs: answerMs } = this.#options;
    const live = { signal, onProgress, answerMs, bytesPerSecond, onHandedOver, calledOff: this.#calledOff, power };
    if (to === null) await stopGuest(guest, power);
    else if (order.live) return handOverGuestLive(guest, order, to, live);
    else await handOverGuestCold(guest, order, to, { signal, onProgress, answerMs, power });
    await guest.change({ handedTo: { attemptId: toAttemptId, isDone: true, wasRunning: false } });
  }

  async rescue(name: GuestName, image: RescueImage, signal: AbortSignal): Promise<void> {
    await rescueGuest(await this.#atRest(name), image, { ...this.#power(signal), images: this.#images });
  }

  async attachVolume(name: GuestName, volume: ServerVolume, signal: AbortSignal): Promise<void> {
    await giveVolume(await this.#atRest(name), volume, { files: this.#volumes, signal });
  }

  async changeVolume(name: GuestName, volume: ServerVolume, step: VolumeStep, signal: AbortSignal): Promise<void> {
    await changeGuestVolume(await this.#atRest(name), volume, step, { files: this.#volumes, signal });
  }

  async detachVolume(name: GuestName, volumeId: string, signal: AbortSignal): Promise<void> {
    await takeVolume(await this.#atRest(name), volumeId, signal);
  }

  async setInterfaces(name: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void> {
    const { bridge } = await this.#options.defaults();
    await changeInterfaces(await this.#atRest(name), interfaces, { bridge, functions: this.#functions, signal });
  }

  async snapshot(name: GuestName, imageId: string, signal: AbortSignal): Promise<void> {
    const guest = await this.#atRest(name);
    await snapshotGuest(guest, imageId, { images: this.#snapshots, program: this.#options.program, signal });
  }

  /** A guest that has not started yet has no log, and so has written nothing. */
  async readConsole(name: GuestName, bytesMax: number): Promise<Uint8Array | null> {
    const guest = this.#find(name);
    return guest === null ? null : readLogEnd(join(guest.dir, GUEST_FILES.consoleLog), bytesMax);
  }

  /** QEMU serves one client at a time. */
  openConsole(name: GuestName): Promise<Duplex> {
    return this.#socket(name, GUEST_FILES.console);
  }

  hasDisplay(name: GuestName): boolean {
    return this.#find(name)?.record.machine.display !== undefined;
  }

  pinningOf(name: GuestName): GuestPinning | null {
    return this.#find(name)?.record.pinning ?? null;
  }

  measure(name: GuestName): Promise<GuestDiagnostics> {
    return measureGuest(this.#existing(name));
  }

  openDisplay(name: GuestName): Promise<Duplex> {
    return this.#socket(name, GUEST_FILES.display);
  }

  async #socket(name: GuestName, file: string): Promise<Duplex> {
    const { socket, opened } = openUnixSocket(join(this.#existing(name).dir, file));
    await opened;
    return socket;
  }

  async destroy(name: GuestName): Promise<void> {
    this.#calledOff.forget(name);
    const guest = this.#guests.get(keyOf(name));
    this.#guests.delete(keyOf(name));
    guest?.detach();
    const [dir, { sysroot }] = [this.#dirOf(name.attemptId), this.#options];
    await removeGuestDir(dir, async () => {
      await this.#functions.release({ dir, record: foundRecord(dir) });
      releaseDevices(dir, { records: () => this.#records(), sysroot });
    });
  }

  /** The guest, without a transfer that is no longer wanted. */
  async #atRest(name: GuestName): Promise<QemuGuest> {
    const guest = this.#existing(name);
    if (guest.record.copiesTo !== undefined) await endOldSnapshot(guest, this.#snapshots);
    await this.#calledOff.end(name, guest);
    return guest;
  }

  #existing(name: GuestName): QemuGuest {
    const guest = this.#find(name);
    if (guest === null) throw new Error("there is no such guest");
    return guest;
  }

  #find(name: GuestName): QemuGuest | null {
    const known = this.#guests.get(keyOf(name));
    if (known !== undefined) return known;
    const guest = QemuGuest.load(this.#dirOf(name.attemptId), this.#heardFrom(name));
    if (guest === null || guest.record.host !== name.host) return null;
    this.#guests.set(keyOf(name), guest);
    return guest;
  }

  /** Tells the agent of a guest that has ended, and of a QEMU that is gone. */
  #heardFrom({ host, serverUuid, attemptId }: GuestName): (event: QmpEvent | null) => void {
    return (event) => {
      if (event === null || ENDINGS.includes(event.name)) this.#onChanged({ host, serverUuid, attemptId });
    };
  }

  readonly #dirOf = (attemptId: string): string => guestDirOf(this.#options.instancesPath, attemptId);

  #power(signal: AbortSignal): PowerControl {
    const { program, shutdownMs, pressAgainMs, sysroot, userNetwork } = this.#options;
    const [functions, volumes] = [this.#functions, this.#volumes];
    return { program, sysroot, userNetwork, functions, volumes, shutdownMs, pressAgainMs, signal };
  }
}

/** QEMU's events about the end of a guest. */
const ENDINGS: readonly string[] = ["SHUTDOWN", "GUEST_PANICKED", "STOP"];

type Interfaces = readonly GuestInterface[] | null;
const keyOf = ({ host, attemptId }: GuestName): string => `${host} ${attemptId}`;
