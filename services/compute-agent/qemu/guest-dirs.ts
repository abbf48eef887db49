import { lstat, mkdir, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  type GuestRecord,
  loadGuestRecord,
  loadRecordUnlessDamaged,
  RECORD_FILE,
} from "../../../adapters/qemu/guest-record.ts";
import { forEachBounded } from "../../../runtime/for-each-bounded.ts";
import type { StorageGate } from "../../../runtime/storage-gate.ts";
import type { DirectoryMark } from "./directory-mark.ts";

const DIR_PREFIX = "guest-";
/** Fewer than the calls that the storage gets at a time, so that what a guest needs of it does not wait for all the others' records. */
const READ_AT_A_TIME = 4;

/** A guest's directory with its record. */
export interface GuestDir {
  readonly dir: string;
  readonly record: GuestRecord;
}

/** A guest's directory with its record, or null if the record is missing, damaged, or cannot be read now. */
export interface FoundGuestDir {
  readonly dir: string;
  readonly record: GuestRecord | null;
}

/**
 * The directory of the guests, which may be those of several hosts. Its storage may hang: each method then rejects with a SilentStorageError, unless it says that it waits.
 */
export class GuestDirs {
  readonly #given: string;
  readonly storage: StorageGate;
  readonly #mark: DirectoryMark | null;
  #path: string | null = null;

  /** Without a mark, any directory in this place is used. */
  constructor(path: string, storage: StorageGate, mark: DirectoryMark | null = null) {
    this.#given = path;
    this.storage = storage;
    this.#mark = mark;
  }

  /**
   * Makes the directory if it is missing and was never there, and finds its real path: the processes of guests are known by it. Rejects with the system's error if it cannot be used, and with a
   * QemuError if it is not the one that the agent has had.
   */
  async open(): Promise<void> {
    this.#path ??= await this.storage.look(async () => {
      if (await this.#mark?.isNoted())
        await stat(this.#given).catch((error: NodeJS.ErrnoException) => {
          throw error.code === "ENOENT" ? this.#mark?.otherThan(this.#given) : error;
        });
      else await mkdir(this.#given, { recursive: true, mode: 0o700 });
      const path = await realpath(this.#given);
      await this.#mark?.check(path);
      return path;
    });
  }

  /** Rejects with a QemuError if another directory has taken this one's place since, as when its file system was unmounted. */
  async confirm(): Promise<void> {
    const path = this.#path ?? this.#given;
    await this.storage.look(() => this.#mark?.confirm(path) ?? Promise.resolve());
  }

  /** The directory of an attempt's guest, in the directory that has been opened. Attempt ids have a slash. Everything else that is unusual in a file name is escaped. */
  readonly dirOf = (attemptId: string): string => {
    const name = encodeURIComponent(attemptId).replaceAll("%2F", "+");
    return join(this.#path ?? this.#given, `${DIR_PREFIX}${name}`);
  };

  /** All guests. Rejects with a QemuError if a record cannot be read. */
  async all(): Promise<readonly GuestDir[]> {
    await this.open();
    const found = await this.#each(loadGuestRecord);
    return found.flatMap(({ dir, record }) => (record === null ? [] : [{ dir, record }]));
  }

  /** All guests, also those whose records are damaged or cannot be read now. So a null says nothing of what the guest has. */
  async found(): Promise<readonly FoundGuestDir[]> {
    await this.open();
    return this.#each(recordIfReadable);
  }

  /**
   * The record of a guest. Null if it is missing or damaged, since it must be possible to remove such a guest nevertheless. Rejects with a QemuError if it cannot be read now: what the
   * guest has must not be forgotten with it.
   */
  foundRecord(dir: string): Promise<GuestRecord | null> {
    return this.storage.look(() => loadRecordUnlessDamaged(dir));
  }

  /** Whether the guest's directory has a record, of whatever content. A guest that was never whole, or is being removed, may have none. */
  hasRecord(dir: string): Promise<boolean> {
    return this.storage.look(() =>
      lstat(join(dir, RECORD_FILE)).then(
        () => true,
        () => false,
      ),
    );
  }

  /** Each record is a call of its own: the directory may have those of many hosts, and many quick answers are no silence. */
  async #each(load: (dir: string) => Promise<GuestRecord | null>): Promise<readonly FoundGuestDir[]> {
    const dirs = await this.storage.look(() => this.#dirs());
    return forEachBounded(dirs, READ_AT_A_TIME, async (dir) => ({
      dir,
      record: await this.storage.look(() => load(dir)),
    }));
  }

  async #dirs(): Promise<readonly string[]> {
    const path = this.#path ?? this.#given;
    const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    return names.filter((name) => name.startsWith(DIR_PREFIX)).map((name) => join(path, name));
  }
}

const recordIfReadable = (dir: string): Promise<GuestRecord | null> => loadGuestRecord(dir).catch(() => null);
