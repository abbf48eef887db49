import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { GuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { existingMdevs } from "../../../adapters/qemu/host-devices.ts";
import { ImageCache } from "../../../adapters/qemu/image-cache.ts";
import { measureGuest } from "../../../adapters/qemu/measure-guest.ts";
import { openUnixSocket } from "../../../adapters/qemu/open-unix-socket.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import { removeGuestDir } from "../../../adapters/qemu/qemu-guest.ts";
import type { QmpEvent } from "../../../adapters/qemu/qmp-client.ts";
import { BYTES_PER_SECOND_MAX } from "../../../adapters/qemu/transfer.ts";
import { GUEST_FILES } from "../../../adapters/qemu/virtual-machine.ts";
import { type VolumeFiles, volumeFilesOf } from "../../../adapters/qemu/volume-files.ts";
import type { PowerVerb, VolumeStep } from "../../../core/agent/power-verbs.ts";
import { runsNow } from "../../../core/agent/runs-now.ts";
import type { TransferProgress } from "../../../core/agent/transfer-progress.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import type {
  GuestDiagnostics,
  GuestInterface,
  RescueImage,
  ServerVolume,
  VolumeFile,
} from "../../../proto/gen/berth/shared.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import { readLogEnd } from "../../../runtime/read-log-end.ts";
import { SnapshotStore } from "../../../runtime/snapshot-store.ts";
import { Turns } from "../../../runtime/turns.ts";
import type {
  Driver,
  DriverCapability,
  FoundPower,
  HandOffOrder,
  HostedGuest,
  KeptState,
  PrepareControl,
  PrepareOrder,
  PrepareOutcome,
} from "../driver.ts";
import { GuestPins } from "../guest-pins.ts";
import type { GuestName } from "../journal.ts";
import { messageOf } from "../message-of.ts";
import { CalledOffMoves } from "./called-off-moves.ts";
import { changeGuestVolume } from "./change-guest-volume.ts";
import { changePower } from "./change-power.ts";
import { ConsoleTrimmer } from "./console-trimmer.ts";
import { foundPowerOf, standsStill } from "./found-power-of.ts";
import { functionsOfGuests, type GuestFunctions } from "./guest-functions.ts";
import { addInterfaces, changeInterfaces } from "./guest-interfaces.ts";
import { leaveRescue, type PowerControl, startGuest } from "./guest-power.ts";
import { giveVolume, takeVolume } from "./guest-volumes.ts";
import { handOverGuestCold, handOverGuestLive } from "./hand-over-guest.ts";
import { HostStorage } from "./host-storage.ts";
import { hostedGuests } from "./hosted-guests.ts";
import { KnownGuests } from "./known-guests.ts";
import { OldWork } from "./old-work.ts";
import { prepareGuest } from "./prepare-guest.ts";
import { qemuCapabilities, qemuTraits } from "./qemu-capabilities.ts";
import type { QemuDriverOptions } from "./qemu-driver-options.ts";
import { releaseDevices } from "./release-devices.ts";
import { rescueGuest } from "./rescue-guest.ts";
import { snapshotGuest } from "./snapshot-guest.ts";
import { snapshotGuestVolume, useVolumeFiles } from "./snapshot-guest-volume.ts";
import { addressToHandOverTo } from "./transfer-address.ts";

/** A QEMU that hangs must not hide the other guests. So this is shorter than the agent's own deadline for a look at all of them. */
const LOOK_MS = 4_000;
/** How long the agent waits at its start for what its last process left: it has no heartbeats yet. What lasts longer goes on, and the orders of its guest wait for it. */
const ADOPT_MS = 3_000;

/** A driver whose guests are virtual machines. Each runs in a QEMU process of its own, which outlives the agent. */
export class QemuDriver implements Driver {
  readonly capabilities: ReadonlySet<DriverCapability>;
  readonly traits: readonly string[];
  readonly #options: QemuDriverOptions;
  readonly #images: ImageCache;
  readonly #snapshots: SnapshotStore;
  readonly #volumes: VolumeFiles | null;
  readonly #storage: HostStorage;
  readonly #guests: KnownGuests;
  readonly #removals = new Turns<string>();
  readonly #calledOff: CalledOffMoves;
  readonly #oldWork: OldWork;
  readonly #pins: GuestPins;
  readonly #functions: GuestFunctions;
  readonly #trimmer: ConsoleTrimmer;
  #onChanged: (guest: GuestName) => void = () => undefined;

  constructor(options: QemuDriverOptions) {
    this.#options = options;
    this.#storage = new HostStorage(options);
    const { dirs, images, volumes } = this.#storage;
    this.#guests = new KnownGuests(dirs, (name) => this.#heardFrom(name));
    this.#volumes = volumeFilesOf(options, volumes);
    this.traits = [...qemuTraits({ hasVolumes: this.#volumes !== null }), ...(options.traits ?? [])];
    this.capabilities = qemuCapabilities({ hasVolumes: this.#volumes !== null, ...options });
    const { imagesPath: sourceDir, imageCache, onDamaged } = options;
    this.#images = new ImageCache({ sourceDir, dir: imageCache, onDamaged, storage: images });
    this.#snapshots = new SnapshotStore(options.imagesPath, ".qcow2", images.source);
    this.#pins = new GuestPins({
      layoutOf: options.layoutOf,
      recorded: async () =>
        (await this.#records()).map(({ host, serverUuid, pinning }) => ({
          ...{ host, serverUuid },
          ...{ held: pinning?.held ?? [], devices: pinning?.devices },
        })),
      existing: (source) => existingMdevs(source, options.sysroot),
    });
    const logs = () => this.#guests.all().map(({ dir }) => join(dir, GUEST_FILES.consoleLog));
    this.#functions = functionsOfGuests({ ...options, dirs });
    this.#trimmer = new ConsoleTrimmer(options.clock, dirs.storage, logs);
    this.#calledOff = new CalledOffMoves(options.clock, (name) => this.#oldWork.endCalledOff(name));
    this.#oldWork = new OldWork({
      clock: options.clock,
      ...{ guests: this.#guests, snapshots: this.#snapshots, calledOff: this.#calledOff, volumes: this.#volumes },
      releaseMs: options.releaseMs,
      onUnknown: (name, error) => options.onUnknown?.(name, error),
      onVolumesLeft: (name, error) => options.onVolumesLeft?.(name, error),
      onInterfacesLeft: (name, error) => options.onInterfacesLeft?.(name, error),
    });
  }

  watch(onChanged: (guest: GuestName) => void): void {
    this.#onChanged = onChanged;
  }

  /** Why no guest can be built here at present, or null. `onChanged` of `watchStorage` is called whenever that may have changed. */
  get closedBecause(): string | null {
    return this.#storage.closedBecause;
  }

  watchStorage(onChanged: () => void): void {
    this.#storage.watch(onChanged);
  }

  /** Makes the directory of the guests if it is missing. Rejects if it cannot be used, or with a SilentStorageError if its storage does not answer. */
  open(): Promise<void> {
    return this.#storage.dirs.open();
  }

  hostedGuests(hosts: ReadonlySet<string>, known: readonly GuestName[]): Promise<readonly HostedGuest[]> {
    const onDamaged = (dir: string) => this.#options.onDamagedRecord?.(dir);
    return hostedGuests(this.#storage.dirs, hosts, { known, onDamaged });
  }

  async adopt(guests: readonly (GuestName & { readonly state: KeptState })[]): Promise<void> {
    this.#storage.start();
    this.#trimmer.start();
    const adopted = [this.#functions.start(), ...guests.map((name) => this.#oldWork.endOfLastProcess(name))];
    const all = Promise.all(adopted).then(() => this.#pins.findStrays((guest) => this.#options.onStrayCpus?.(guest)));
    await withDeadline(all, ADOPT_MS, "the adoption of guests", this.#options.clock).catch((error: unknown) => {
      if (!(error instanceof DeadlineError)) throw error;
    });
  }

  powersOf(guests: readonly GuestName[]): Promise<readonly FoundPower[]> {
    return Promise.all(
      guests.map(async (name) => {
        try {
          return await withDeadline(this.#powerOf(name), LOOK_MS, "the look at a guest", this.#options.clock);
        } catch (error) {
          this.#options.onUnknown?.(name, error);
          return "unknown";
        }
      }),
    );
  }

  async #powerOf(name: GuestName): Promise<FoundPower> {
    const guest = await this.#guests.find(name);
    if (guest !== null) return foundPowerOf(guest, await guest.state());
    return (await this.#guests.isLost(name)) ? "missing" : "unknown";
  }

  async standsStill(name: GuestName): Promise<boolean> {
    const guest = await this.#guests.existing(name);
    return standsStill(guest, await guest.state());
  }

  /** The guests of these hosts that really exist, for an auditor. Other hosts may have theirs in the same directory. */
  async guests(hosts: ReadonlySet<string>): Promise<readonly (GuestName & { readonly running: boolean })[]> {
    const own = (await this.#records()).filter(({ host }) => hosts.has(host));
    const found = await Promise.all(own.map((record) => this.#guests.find(record)));
    return Promise.all(
      found
        .flatMap((guest) => guest ?? [])
        .map(async (guest) => {
          const { host, serverUuid, attemptId } = guest.record;
          return { host, serverUuid, attemptId, running: runsNow(foundPowerOf(guest, await guest.state())) };
        }),
    );
  }

  async #records(): Promise<readonly GuestRecord[]> {
    return (await this.#storage.dirs.all()).map(({ record }) => record);
  }

  /** Gives up the connections to the guests, for the agent's next process. The guests stay as they are. */
  close(): void {
    this.#trimmer.close();
    this.#functions.close();
    this.#calledOff.close();
    this.#oldWork.close();
    this.#storage.close();
    for (const guest of this.#guests.all()) guest.detach();
  }

  async prepare(order: PrepareOrder, control: PrepareControl): Promise<PrepareOutcome> {
    const { program, transferHost, hasSecretTransfers, sysroot, userNetwork } = this.#options;
    const functions = this.#functions;
    const { dirs } = this.#storage;
    const onEvent = this.#heardFrom(order);
    try {
      this.#storage.refuseSilence(order.server.volumes);
      await dirs.open();
      await dirs.confirm();
      const defaults = await this.#options.defaults();
      const [volumes, images] = [this.#volumes, this.#images];
      const options = {
        ...{ program, images, volumes, defaults, transferHost, hasSecretTransfers },
        ...{ dirs, sysroot, functions, userNetwork },
      };
      const guest = await this.#pins.pinned(order, (pinning) =>
        prepareGuest({ ...options, pinning }, order, { ...control, onEvent }),
      );
      this.#guests.add(order, guest);
      const { listensAt } = guest.record;
      return { kind: "prepared", ...(listensAt !== "" && { listensAt }) };
    } catch (error) {
      const isFinal = error instanceof QemuError && error.isFinal;
      return { kind: "failed", failure: isFinal ? "abort" : "reschedule", reason: messageOf(error) };
    }
  }

  async start(name: GuestName, signal: AbortSignal): Promise<void> {
    await this.#oldWork.order(name, { skipsDevices: true, signal }, (guest) => startGuest(guest, this.#power(signal)));
  }

  async power(name: GuestName, verb: PowerVerb, signal: AbortSignal, interfaces?: Interfaces): Promise<void> {
    const skipsDevices = WITHOUT_DEVICES.includes(verb);
    return this.#oldWork.order(name, { skipsDevices, signal }, async (guest) => {
      const isWanted = verb === "hard-reboot" && interfaces != null;
      const wanted = isWanted ? { interfaces, bridge: (await this.#options.defaults()).bridge } : null;
      return changePower(guest, verb, { ...this.#power(signal), wanted });
    });
  }

  handOff(order: HandOffOrder, signal: AbortSignal, onProgress: (progress: TransferProgress) => void): Promise<void> {
    const done = this.#oldWork.during(order, () => this.#handOff(order, signal, onProgress));
    return done.catch((error: unknown) => this.#guests.forgetLost(order).then(() => Promise.reject(error)));
  }

  async #handOff(
    order: HandOffOrder,
    signal: AbortSignal,
    onProgress: (progress: TransferProgress) => void,
  ): Promise<void> {
    const { toAttemptId } = order;
    const to = addressToHandOverTo(order);
    const isResumed = order.force && this.#calledOff.takeUp(order, toAttemptId);
    const guest = isResumed ? await this.#guests.existing(order) : await this.#oldWork.atRest(order, { signal });
    const { handedTo } = guest.record;
    if (handedTo?.attemptId === toAttemptId && handedTo.isDone) return;
    await leaveRescue(guest, order);
    const power = this.#power(signal);
    const { bytesPerSecond = BYTES_PER_SECOND_MAX, onHandedOver, disksAnswerMs: answerMs } = this.#options;
    const live = { signal, onProgress, answerMs, bytesPerSecond, onHandedOver, calledOff: this.#calledOff, power };
    if (to === null) await this.#guests.stopForGood(guest, power);
    else if (order.live) return handOverGuestLive(guest, order, to, live);
    else await handOverGuestCold(guest, order, to, { signal, onProgress, answerMs, power });
    await guest.change({ handedTo: { attemptId: toAttemptId, isDone: true, wasRunning: false } });
  }

  async rescue(name: GuestName, image: RescueImage, signal: AbortSignal): Promise<void> {
    const control = { ...this.#power(signal), images: this.#images };
    await this.#oldWork.order(name, { signal }, (guest) => rescueGuest(guest, image, control));
  }

  async attachVolume(name: GuestName, volume: ServerVolume, signal: AbortSignal): Promise<void> {
    const files = this.#volumes;
    await this.#oldWork.order(name, { signal }, (guest) => giveVolume(guest, volume, { files, signal }));
  }

  async changeVolume(name: GuestName, volume: ServerVolume, step: VolumeStep, signal: AbortSignal): Promise<void> {
    const files = this.#volumes;
    await this.#oldWork.order(name, { signal }, (guest) => changeGuestVolume(guest, volume, step, { files, signal }));
  }

  async snapshotVolume(
    name: GuestName,
    volume: ServerVolume,
    order: Parameters<typeof snapshotGuestVolume>[2],
    signal: AbortSignal,
  ): Promise<void> {
    const files = this.#volumes;
    await this.#oldWork.order(name, { signal }, (guest) =>
      snapshotGuestVolume(guest, volume, order, { files, signal }),
    );
  }

  async useFiles(name: GuestName, files: readonly VolumeFile[], signal: AbortSignal): Promise<void> {
    await this.#oldWork.order(name, { signal }, (guest) => useVolumeFiles(guest, files, this.#volumes));
  }

  async detachVolume(name: GuestName, volumeId: string, signal: AbortSignal): Promise<void> {
    await this.#oldWork.order(name, { signal }, (guest) => takeVolume(guest, volumeId, signal));
  }

  async setInterfaces(name: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void> {
    const { bridge } = await this.#options.defaults();
    // An interface may still be leaving the guest. A guest that was given the same one meanwhile would lose it, so the release is awaited.
    const control = { bridge, functions: this.#functions, signal, releaseMs: this.#options.releaseMs };
    await this.#oldWork.order(name, { signal }, (guest) => changeInterfaces(guest, interfaces, control));
  }

  async addInterfaces(name: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void> {
    const { bridge } = await this.#options.defaults();
    await this.#oldWork.order(name, { signal }, (guest) => addInterfaces(guest, interfaces, { bridge, signal }));
  }

  async snapshot(name: GuestName, imageId: string, signal: AbortSignal): Promise<void> {
    const control = { images: this.#snapshots, program: this.#options.program, signal };
    await this.#oldWork.order(name, { signal }, (guest) => snapshotGuest(guest, imageId, control));
  }

  /** A guest that has not started yet has no log, and so has written nothing. */
  async readConsole(name: GuestName, bytesMax: number): Promise<Uint8Array | null> {
    const guest = await this.#guests.find(name);
    if (guest === null) return null;
    return guest.storage.look(() => readLogEnd(join(guest.dir, GUEST_FILES.consoleLog), bytesMax));
  }

  /** QEMU serves one client at a time. */
  openConsole(name: GuestName): Promise<Duplex> {
    return this.#socket(name, GUEST_FILES.console);
  }

  hasDisplay(name: GuestName): boolean {
    return this.#guests.known(name)?.record.machine.display !== undefined;
  }

  pinningOf(name: GuestName): GuestPinning | null {
    return this.#guests.known(name)?.record.pinning ?? null;
  }

  async measure(name: GuestName): Promise<GuestDiagnostics> {
    return measureGuest(await this.#guests.existing(name));
  }

  openDisplay(name: GuestName): Promise<Duplex> {
    return this.#socket(name, GUEST_FILES.display);
  }

  async #socket(name: GuestName, file: string): Promise<Duplex> {
    const path = join((await this.#guests.existing(name)).dir, file);
    await this.#storage.dirs.storage.look(() => lstat(path));
    return openUnixSocket(path);
  }

  async destroy(name: GuestName): Promise<void> {
    const { dirs } = this.#storage;
    dirs.storage.refuseSilence();
    await dirs.open();
    this.#calledOff.forget(name);
    this.#oldWork.forget(name);
    this.#guests.forget(name);
    const dir = dirs.dirOf(name.attemptId);
    const release = async () => {
      await this.#functions.release({ dir, record: await dirs.foundRecord(dir) });
      const { sysroot } = this.#options;
      await this.#removals.take(["devices"], () => releaseDevices(dir, { dirs, sysroot }));
    };
    await removeGuestDir(dir, release, dirs.storage);
  }

  /** Tells the agent of a guest that has ended, and of a QEMU that is gone. */
  #heardFrom({ host, serverUuid, attemptId }: GuestName): (event: QmpEvent | null) => void {
    const name = { host, serverUuid, attemptId };
    return (event) => {
      if (event === null || ENDINGS.includes(event.name)) this.#onChanged(name);
      else if (event.name === "DEVICE_DELETED" && event.data.device !== undefined)
        this.#oldWork.released(name, String(event.data.device));
    };
  }

  #power(signal: AbortSignal): PowerControl {
    const { program, shutdownMs, pressAgainMs, sysroot, userNetwork } = this.#options;
    const [functions, volumes, images] = [this.#functions, this.#volumes, this.#images];
    return { program, sysroot, userNetwork, functions, volumes, images, shutdownMs, pressAgainMs, signal };
  }
}

/** QEMU's events about the end of a guest. */
const ENDINGS: readonly string[] = ["SHUTDOWN", "GUEST_PANICKED", "STOP"];

/** Orders that do not wait for a guest to release its interfaces, or for the storage of its volumes. */
const WITHOUT_DEVICES: readonly PowerVerb[] = ["start", "stop", "hard-reboot"];

type Interfaces = readonly GuestInterface[] | null;
