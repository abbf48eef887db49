import type { DamagedCopy } from "../../../adapters/qemu/image-cache.ts";
import type { UserNetwork } from "../../../adapters/qemu/virtual-machine.ts";
import type { MachineLayout } from "../../../core/pinning/machine-layout.ts";
import type { CpuHolder } from "../guest-pins.ts";
import type { GuestName } from "../journal.ts";
import type { FunctionsOptions } from "./guest-functions.ts";
import type { MachineDefaults } from "./machine-of-server.ts";

export interface QemuDriverOptions extends Omit<FunctionsOptions, "dirs"> {
  /** The directory of the guests, one directory each. Hosts may share it: then live moves need not copy disks. */
  readonly instancesPath: string;
  /** The agent's file in which it notes the mark of that directory (`DirectoryMark`). Without it the directory is used whatever it is. */
  readonly directoryNote?: string | undefined;
  /** Called at the start if that directory is used without a mark, since it could not be marked or the mark could not be noted. */
  readonly onUnmarked?: (error: unknown) => void;
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
  /** How long a guest may need to release an interface. The default suits operating systems. */
  readonly releaseMs?: number | undefined;
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
  /** How long the storage of a directory may take to answer a call. */
  readonly silentAfterMs?: number | undefined;
  /** Called when the storage of a directory does not answer any longer, with the reason, and when it does again, with null. */
  readonly onStorage?: (directory: string, silence: string | null) => void;
  /** Called at the start for each directory of a guest whose record is damaged, so that nobody knows whose guest it is. */
  readonly onDamagedRecord?: (dir: string) => void;
  /** Called for each guest whose state cannot be found out. */
  readonly onUnknown?: (guest: GuestName, error: unknown) => void;
  /** Called for each guest that lacks volumes of its record, and cannot get them now. */
  readonly onVolumesLeft?: (guest: GuestName, error: unknown) => void;
  /** Called for each guest whose interfaces the agent's last process was changing, and which cannot be completed now. */
  readonly onInterfacesLeft?: (guest: GuestName, error: unknown) => void;
  /** The CPUs and NUMA nodes behind a host's resource providers, or null when they are unknown. Without it they are unknown for every host. */
  readonly layoutOf?: (host: string) => MachineLayout | null;
  /** Returns the settings that apply to every guest. Called for each build. */
  readonly defaults: () => Promise<MachineDefaults>;
}
