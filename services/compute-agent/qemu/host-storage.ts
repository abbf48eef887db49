import { stat, utimes } from "node:fs/promises";
import { COPYING_THREADS, type ImageStorage } from "../../../adapters/qemu/image-cache.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { StorageGate } from "../../../runtime/storage-gate.ts";
import { DirectoryMark } from "./directory-mark.ts";
import { GuestDirs } from "./guest-dirs.ts";

/** How often a storage is asked whether it answers, while nothing else asks it. */
const PROBE_EVERY_MS = 10_000;
/** Together these are far fewer than the threads that Node gets for files in an agent. */
const FEW_CALLS = 4;
const MANY_CALLS = 8;
/** The threads of this process that may hang at a time: with the calls to all directories, and with images that are being copied. */
export const STORAGE_THREADS = 2 * MANY_CALLS + 3 * FEW_CALLS + COPYING_THREADS;

interface HostStorageOptions {
  readonly clock: Clock;
  readonly instancesPath: string;
  readonly directoryNote?: string | undefined;
  /** Called when the directory of guests is used without a mark, since it could not be marked. */
  readonly onUnmarked?: ((error: unknown) => void) | undefined;
  readonly imagesPath: string;
  readonly imageCache: string;
  readonly volumeDir?: string | undefined;
  readonly volumeMounts?: string | undefined;
  /** How long a storage may take to answer. */
  readonly silentAfterMs?: number | undefined;
  /** Called when a directory's storage does not answer any longer, with the reason, and when it does again, with null. */
  readonly onStorage?: ((directory: string, silence: string | null) => void) | undefined;
}

/** How a storage is asked whether it answers. */
interface Probe {
  readonly gate: StorageGate;
  readonly probe: () => Promise<unknown>;
}

/**
 * The directories of a host in which its guests are, and from which they are made. Each may be on a storage that hangs, which must not keep the agent from the others, from its
 * heartbeats, or from guests that need nothing of it.
 */
export class HostStorage {
  readonly dirs: GuestDirs;
  readonly images: ImageStorage;
  readonly volumes: Readonly<Record<"own" | "mounts", StorageGate>>;
  readonly #options: HostStorageOptions;
  readonly #probes: readonly Probe[];
  #onClosed: () => void = () => undefined;
  readonly #timers = new Map<StorageGate, Timer>();
  #isClosed = false;

  constructor(options: HostStorageOptions) {
    this.#options = options;
    const { instancesPath, imagesPath, imageCache, volumeDir, volumeMounts } = options;
    const instances = this.#gate(`the directory of guests ${instancesPath}`, MANY_CALLS);
    const { directoryNote, onUnmarked } = options;
    const mark = directoryNote === undefined ? null : new DirectoryMark(directoryNote, onUnmarked);
    this.dirs = new GuestDirs(instancesPath, instances, mark);
    this.images = {
      source: this.#gate(`the directory of images ${imagesPath}`, FEW_CALLS),
      copies: this.#gate(`the directory of copied images ${imageCache}`, FEW_CALLS),
    };
    this.volumes = {
      own: this.#gate(`the directory of volumes ${volumeDir}`, MANY_CALLS),
      mounts: this.#gate(`the directory of Cinder's exports ${volumeMounts}`, FEW_CALLS),
    };
    this.#probes = [
      { gate: instances, probe: () => touched(instancesPath) },
      { gate: this.images.source, probe: () => stat(imagesPath) },
      { gate: this.images.copies, probe: () => stat(imageCache) },
      ...(volumeDir === undefined ? [] : [{ gate: this.volumes.own, probe: () => stat(volumeDir) }]),
      ...(volumeMounts === undefined ? [] : [{ gate: this.volumes.mounts, probe: () => stat(volumeMounts) }]),
    ];
  }

  /** Why no guest can be built at present, or null if the storage answers. */
  get closedBecause(): string | null {
    return this.dirs.storage.silence ?? this.images.source.silence ?? this.images.copies.silence;
  }

  /** Rejects if no guest with these volumes can be built at present. A build that hangs would keep its server from other hosts. */
  refuseSilence(volumes: readonly Pick<ServerVolume, "inCinder">[]): void {
    for (const gate of [this.dirs.storage, this.images.source, this.images.copies]) gate.refuseSilence();
    for (const { inCinder } of volumes) this.volumes[inCinder ? "mounts" : "own"].refuseSilence();
  }

  /** `onClosed` is called whenever `closedBecause` may have changed. */
  watch(onClosed: () => void): void {
    this.#onClosed = onClosed;
  }

  /** Asks from now on whether the storage answers. */
  start(): void {
    for (const one of this.#probes) this.#askAgain(one);
  }

  /** Each by itself: one that has not answered yet must not keep the others from being asked. */
  #askAgain(one: Probe): void {
    const { gate, probe } = one;
    const timer = this.#options.clock.setTimer(PROBE_EVERY_MS, async () => {
      // A directory that is missing, or cannot be written to, answers.
      await gate.look(probe).catch(() => undefined);
      if (!this.#isClosed) this.#askAgain(one);
    });
    this.#timers.set(gate, timer);
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    for (const { gate } of this.#probes) gate.close();
  }

  #gate(name: string, callsMax: number): StorageGate {
    const { clock, silentAfterMs, onStorage } = this.#options;
    return new StorageGate({
      ...{ name, clock, callsMax },
      ...(silentAfterMs !== undefined && { silentAfterMs }),
      onChanged: (silence) => {
        onStorage?.(name, silence);
        this.#onClosed();
      },
    });
  }
}

/** Writes to a directory without changing anything that somebody looks at: reading may work where writing hangs. */
async function touched(dir: string): Promise<void> {
  const { mtime } = await stat(dir);
  await utimes(dir, new Date(), mtime);
}
