import type { Duplex } from "node:stream";
import type { PowerVerb, SnapshotStep, VolumeStep } from "../../core/agent/power-verbs.ts";
import type { TransferProgress } from "../../core/agent/transfer-progress.ts";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import type { AttemptFailure } from "../../core/tasks/build-task.ts";
import type {
  AllocationRequest,
  GuestDiagnostics,
  GuestInterface,
  RescueImage,
  ServerSpec,
  ServerVolume,
  VolumeFile,
  VolumeSnapshot,
} from "../../proto/gen/berth/shared.ts";
import type { GuestName, GuestState } from "./journal.ts";

export interface PrepareOrder extends GuestName {
  readonly server: ServerSpec;
  /** The guest from which a moved server comes, and the kind of operation. Null for a new server. */
  readonly movedFrom: { readonly host: string; readonly attemptId: string; readonly by: string } | null;
  /** The providers that serve the server. A driver pins the server to them. */
  readonly allocation: AllocationRequest | undefined;
}

export interface PrepareControl {
  /** Raised when the attempt took too long or is no longer wanted. A guest that already exists is destroyed afterwards. */
  readonly signal: AbortSignal;
  /** Reports the current step ("image", "disk", "spawn"). */
  onStep(step: string): void;
}

export type PrepareOutcome =
  /**
   * `listensAt` is the address at which the guest waits for the guest that hands over to it. The driver of the source
   * receives it with its `HandOffOrder`. Nobody else reads it, apart from the end `://nothing` (see `isOfGuestThatTakesNothing`). It may have `LISTENS_AT_CHARS_MAX` characters. It may contain a secret of this one transfer, so it is never logged; the agent's
   * journal, which keeps it, can be read by its user alone.
   */
  | { readonly kind: "prepared"; readonly listensAt?: string }
  | { readonly kind: "failed"; readonly failure: AttemptFailure; readonly reason: string };

/** A state in which a guest may outlive its agent. */
export type KeptState = Exclude<GuestState, "building">;

export interface HandOffOrder extends GuestName {
  readonly toHost: string;
  readonly toAttemptId: string;
  readonly live: boolean;
  /** Only for a live hand-off: stop the guest now and copy the rest. */
  readonly force: boolean;
  /** The address that the destination's driver named when it prepared the guest there. Empty when it named none or none is known. */
  readonly listensAt: string;
  /** Repetitions of an order have the same id. */
  readonly orderId: string;
}

/**
 * The state in which a guest is found on its host. `missing` means that the host has no such guest, and `unknown` that the driver cannot tell
 * now, so that nothing is done about the guest. A prepared guest counts as `stopped`
 * until it is started, also while it waits for a hand-over, receives one, or has received all of it. `shut-down` and `crashed` are for a
 * guest that stopped without an order (see `StopCause`): its server is then stopped, too. `stopped-with-host` is for a guest that ran or was paused when its host ended, and has not run
 * since; nothing of it is left but its disks. Every guest about which the driver does not know more counts as `stopped`.
 */
export type FoundPower =
  | "running"
  | "stopped"
  | "paused"
  | "suspended"
  | "rescued"
  | "shut-down"
  | "crashed"
  | "stopped-with-host"
  | "missing"
  | "unknown";

/**
 * - `suspend`: a guest's memory can be saved on its host, and the guest resumed from it, also after the host has restarted.
 * - `live-migrate`: a guest can be handed over to another host while it runs.
 * - `snapshot`: a guest's disk can be copied into an image.
 * - `rescue`: a guest can be booted from another image, with its own disks beside it.
 * - `inject-nmi`: a guest that runs or is paused can be sent a non-maskable interrupt, at which its kernel may dump its memory.
 * - `volumes`: volumes can be connected to a guest and disconnected from it, also while it runs.
 * - `change-volumes`: a volume of a guest that runs can be replaced by another one with the same content, and can grow.
 * - `volume-snapshots`: the host can do its part in making and deleting snapshots of volumes that guests use.
 * - `interfaces`: a guest's interfaces can be changed after it was built, also while it runs.
 * - `serial-console`: a client can read a guest's serial console and type into it.
 * - `trusted-certs`: the signature of a guest's image is checked with the certificates that its server names.
 * - `display`: a client can see a guest's display, and use its keyboard and pointer. A guest that was built before its host had displays has none.
 */
export type DriverCapability =
  | "suspend"
  | "live-migrate"
  | "snapshot"
  | "rescue"
  | "inject-nmi"
  | "volumes"
  | "change-volumes"
  | "volume-snapshots"
  | "interfaces"
  | "serial-console"
  | "trusted-certs"
  | "display";

/** Whether the guest that is prepared takes over another one's memory. */
export function movesMemory({ movedFrom }: Pick<PrepareOrder, "movedFrom">): boolean {
  return movedFrom?.by === "live-migrate" || staysPaused({ movedFrom });
}

/** Whether the other guest is paused, so that this one is paused, too, instead of started, when everything has arrived. */
export function staysPaused({ movedFrom }: Pick<PrepareOrder, "movedFrom">): boolean {
  return movedFrom?.by === "live-migrate-paused";
}

/**
 * A driver's refusal to let a guest run that still waits for what another host was to hand over to it. Its conductor may have the guest destroyed for that reason, so a driver that
 * is not certain throws another error.
 */
export class NotArrivedError extends Error {
  override readonly name = "NotArrivedError";
}

/** The refusal of volumes by a host whose driver lacks the capability `volumes`. */
export const NO_VOLUMES = "the host's driver cannot attach volumes";

/** The refusal of a change of a volume by a host whose driver lacks the capability `change-volumes`. */
export const NO_VOLUME_CHANGES = "the host's driver cannot change volumes";

/** The refusal of a snapshot of a volume by a host whose driver lacks the capability `volume-snapshots`. */
export const NO_VOLUME_SNAPSHOTS = "the host's driver cannot make or delete snapshots of volumes that guests use";

/** The refusal of certificates by a host whose driver lacks the capability `trusted-certs`. Source: `_check_trusted_certs` of Nova's compute manager. */
export const NO_TRUSTED_CERTS =
  "Trusted image certificates provided on host that does not support certificate validation.";

/** A guest does not have the volume that was to be changed. */
export class LacksVolumeError extends Error {
  override readonly name = "LacksVolumeError";

  constructor(volumeId: string) {
    super(`the guest does not have volume ${volumeId}`);
  }
}

/** A guest that outlived the agent's last process. */
export type AdoptedGuest = GuestName & {
  readonly state: KeptState;
  /** The volumes that were connected to it; none if absent. */
  readonly volumes?: readonly ServerVolume[];
};

/**
 * A guest that exists on a host, as its driver knows it without the agent's journal. `half-built`: its `prepare` has not ended. `prepared`: it has never run here, and `listensAt` is the
 * address that `prepare` answered with, as long as the guest waits there. `has-run`: it was told to run here at least once, whether or not it runs now.
 */
export interface HostedGuest extends GuestName {
  readonly stage: "half-built" | "prepared" | "has-run";
  readonly listensAt?: string;
  /** The volumes that are connected to it, or that it has from its next start. */
  readonly volumeIds: readonly string[];
}

/** A driver that needs longer than this to remove a guest has failed. */
export const DESTROY_TIMEOUT_MS = 60_000;

/**
 * Creates and changes guests on hosts. A driver may be called for many hosts and many guests at a time. Calls for one guest never overlap,
 * with one exception: `prepare` is called at most once in the life of a process, and `destroy` may be called while it runs and again when
 * it ends. Any error that a driver throws counts as a failure that another host may cure.
 *
 * A call whose signal is raised is no longer wanted. The driver then gives up its work and settles soon, whether or not it has changed the
 * guest. Until the call has settled, nothing else is done to the guest and no order is answered.
 */
export interface Driver {
  /** The optional capabilities of the driver. The agent, or the driver itself, refuses orders that need more. */
  readonly capabilities: ReadonlySet<DriverCapability>;
  /**
   * Standard traits of the driver (`COMPUTE_*`), such as the formats of images that it can use. The agent gives them to the root provider of
   * each host. Source: `CAPABILITY_TRAITS_MAP` of Nova's virt/driver.py.
   */
  readonly traits: readonly string[];
  /**
   * Called once, before all other calls. The driver calls `onChanged` when a guest may have changed without an order, and the agent then
   * looks at the guest. Calling it too often does no harm. A change that is not reported is found when the host is next compared.
   */
  watch(onChanged: (guest: GuestName) => void): void;
  /**
   * All guests that exist on these hosts, whoever recorded them. Called before `adopt`. Rejects if the driver cannot tell now: a guest that is missing here counts as one that does not
   * exist. The driver need not look at the known guests, and may leave them out. A guest whose description is damaged for good is left out, too, with a warning.
   */
  hostedGuests(hosts: ReadonlySet<string>, known: readonly GuestName[]): Promise<readonly HostedGuest[]>;
  /**
   * Called once, before all calls but `watch` and `hostedGuests`, with the guests that outlived the agent's last process. When it resolves, nothing that the last
   * process began on them may still be going on, or the guest's next order waits for its end: the agent has no heartbeats before. The lost guests were half built, or their removal was not finished: `destroy` is called for each
   * of them later.
   */
  adopt(guests: readonly AdoptedGuest[], lost?: readonly GuestName[]): Promise<void>;
  /** The present state of each of these guests on its host. */
  powersOf(guests: readonly GuestName[]): Promise<readonly FoundPower[]>;
  /** Whether a guest that counts as running stands still, because a live move that has failed has halted it. Absent if no guest of the driver's does. */
  standsStill?(guest: GuestName): Promise<boolean>;
  /**
   * Creates a guest that does not run. A guest that waits for another guest to be handed over to it listens until it is started or destroyed,
   * and does not run by itself when everything has arrived. An agent's restart changes neither the guest nor its address.
   */
  prepare(order: PrepareOrder, control: PrepareControl): Promise<PrepareOutcome>;
  /**
   * Starts a prepared guest. Does nothing if the guest already runs. Rejects for one that was prepared for another guest's memory and has not received all of it: conductors start
   * the guest of a live move whose source cannot say whether it has handed over, and another guest of the server may be the one that has everything.
   */
  start(guest: GuestName, signal: AbortSignal): Promise<void>;
  /**
   * Changes a guest's power state. Does nothing if the guest is already in that state. A prepared guest to which a paused one was handed over is paused without
   * having run. A guest that was handed over in vain is paused again, too. A guest that never ran may also be stopped. To
   * start a suspended guest is to resume it. To unrescue, start, reboot or stop a rescued guest ends its rescue: it runs from its own disk again, or
   * not at all. A hard reboot gives the guest the interfaces that are named, and no others, while it does not run. A non-maskable interrupt is sent at each call, and leaves the state as it is. A rescued guest cannot be paused, suspended, copied or handed over while it runs; the driver rejects that.
   */
  power(
    guest: GuestName,
    verb: PowerVerb,
    signal: AbortSignal,
    interfaces?: readonly GuestInterface[] | null,
  ): Promise<void>;
  /**
   * Hands a guest over to the guest that was prepared on another host: copies what that one lacks (for a live hand-off while the guest
   * runs), and stops the guest. After its signal is raised, the guest is left as it was.
   * `onProgress` may be called at any time and as often as the driver likes.
   */
  handOff(order: HandOffOrder, signal: AbortSignal, onProgress: (progress: TransferProgress) => void): Promise<void>;
  /**
   * Copies the guest's first disk, as it is at one moment, into an image from which servers can be made. The guest goes on as it was. An image
   * of this id that exists already is a success: images are whole or not there. After its signal is raised, nothing is left of the copy.
   */
  snapshot(guest: GuestName, imageId: string, signal: AbortSignal): Promise<void>;
  /**
   * Stops the guest and boots it from the image, with its own disks beside the image's. Does nothing if the guest is already rescued with this
   * image. The guest stays rescued, also for the agent's next process, until another call ends its rescue, which loses what was written to the
   * rescue image. When this fails, the guest may be stopped.
   */
  rescue(guest: GuestName, image: RescueImage, signal: AbortSignal): Promise<void>;
  /**
   * Connects a volume to the guest, and makes the volume if no host has made it yet. A guest that does not run has it from its next start. Does
   * nothing if the guest has the volume already. When this fails, the guest may have the volume.
   */
  attachVolume(guest: GuestName, volume: ServerVolume, signal: AbortSignal): Promise<void>;
  /** Disconnects a volume from the guest. Does nothing if the guest does not have it. When this fails, the guest may have the volume. */
  detachVolume(guest: GuestName, volumeId: string, signal: AbortSignal): Promise<void>;
  /**
   * Changes a volume of a guest. Each step may be repeated.
   * - `extend` tells the guest that the volume has grown to its size. A guest that does not run hears of it at its next start.
   *
   * The others replace the volume of a guest that runs or is paused by another one (`replacedBy`).
   * - `mirror` copies the volume to the other one, to which `connection` is the way. When it resolves, both are the same, and each further write of the
   *   guest goes to both. When this fails, the guest has its volume as before.
   * - `pivot`: from now on the guest uses the other one, also at its next start. When this fails, the guest uses one of them, which `keep` tells.
   * - `keep` ends the copying, and resolves when the guest uses its own volume alone. Rejects if the guest uses the other one.
   * Each rejects with a LacksVolumeError if the guest does not have the volume.
   */
  changeVolume(guest: GuestName, volume: ServerVolume, step: VolumeStep, signal: AbortSignal): Promise<void>;
  /**
   * The host's part in a snapshot of a volume in Cinder that a guest uses, whose files lie beside each other. `connection` names the file that Cinder takes for the one to which the guest
   * writes; a guest that writes to another one is left as it is, and the call rejects. Each step may be repeated. Absent in a driver without the capability `volume-snapshots`.
   * - `switch`: the guest writes to `newFile` from now on, also at its next start. That file refers to the one before. When this fails, the guest writes to one of them.
   * - `return`: the guest writes to the former file again, which has what the new one has. Does nothing if the guest does not write to `newFile`. `connection` is empty.
   * - `merge`: what `fileToMerge` has goes into `mergeTarget`, or, if that is empty, what lies between `fileToMerge` and the guest's file goes into the latter. When it resolves, the guest
   *   uses none of the files without which it can do.
   */
  snapshotVolume?(
    guest: GuestName,
    volume: ServerVolume,
    order: { readonly snapshot: VolumeSnapshot; readonly step: SnapshotStep },
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Makes sure that a guest uses these files for its volumes when it starts next. A file that refers to the one that the guest has is taken; the call rejects for any other one, and the
   * guest is not started then. Absent in a driver without the capability `volume-snapshots`.
   */
  useFiles?(guest: GuestName, files: readonly VolumeFile[], signal: AbortSignal): Promise<void>;
  /**
   * Gives the guest these interfaces and no others. Those that it has already stay as they are, without an interruption. A guest that does not run has
   * them from its next start. Rejects if the guest does not release one in time; when this fails, the guest may have any of the old and the new ones.
   */
  setInterfaces(guest: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void>;
  /** Like `setInterfaces`, but the guest keeps all interfaces that it has: it only gets those of these that it lacks. */
  addInterfaces(guest: GuestName, interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<void>;
  /**
   * Gives the guest's administrator this password. Rejects if the guest does not run, and never with the password in the message. Absent in a driver that
   * reaches nothing inside of its guests.
   */
  changePassword?(guest: GuestName, password: string, signal: AbortSignal): Promise<void>;
  /**
   * Reads the end of what the guest has written to its serial console on its host, at most `bytesMax` bytes. It may be called at any time, also
   * while another call for the guest runs. Resolves with null when there is no such guest.
   */
  readConsole(guest: GuestName, bytesMax: number): Promise<Uint8Array | null>;
  /**
   * Opens the serial console of a guest that runs or is paused, to read what it writes from now on and to type. It may be called at any time,
   * also while another call for the guest runs. The console ends with the guest's run. Rejects when there is none.
   */
  openConsole(guest: GuestName): Promise<Duplex>;
  /** Whether the guest has a display. False when there is no such guest. */
  hasDisplay(guest: GuestName): boolean;
  /**
   * Opens the display of a guest, with its keyboard and pointer, for one client that speaks RFB (RFC 6143). It may be called at any time, also
   * while another call for the guest runs. The connection ends with the guest's run on this host. Rejects when there is none.
   */
  openDisplay(guest: GuestName): Promise<Duplex>;
  /** The CPUs and the memory of its host that the guest has. Null when it may use all of them, or when there is no such guest. */
  pinningOf(guest: GuestName): GuestPinning | null;
  /**
   * Measures what a guest that runs uses. It may be called at any time, also while another call for the guest runs. Resolves with null when the
   * driver measures nothing, and rejects when the guest does not run.
   */
  measure(guest: GuestName): Promise<GuestDiagnostics | null>;
  /** Removes the guest and whatever a failed or incomplete `prepare` left of it. Does nothing if there is nothing to remove. */
  destroy(guest: GuestName, signal: AbortSignal): Promise<void>;
}
