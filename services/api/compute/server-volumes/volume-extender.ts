import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import type { Caller } from "../../../../proto/gen/berth/cell.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { Fault } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import { beginInCell } from "../server-actions/begin-in-cell.ts";
import { attachmentOfServer } from "./find-attachment.ts";
import { serverVolumeOf } from "./server-volume-of.ts";
import type { ServerVolumes } from "./server-volumes.ts";
import { stillWith } from "./still-with.ts";

/** How often, and how many times, a server is looked at again that has another operation under way, or whose cell or Cinder does not answer. */
const AGAIN_MS = 2_000;
const TRIES_MAX = 30;
/** How many volumes are followed at a time, and how many more wait for their turn. */
const RUNNING_MAX = 1_000;
const WAITING_MAX = 10_000;

export interface ExtendedVolume {
  readonly serverUuid: string;
  readonly volumeId: string;
}

interface ExtenderDeps {
  readonly volumes: ServerVolumes;
  readonly store: Pick<RequestsPort, "requests">;
  readonly cells: Cells;
  readonly clock: Clock;
  readonly events: ApiEvents;
}

/**
 * Lets guests see that Cinder has extended a volume of theirs (operation `extend-volume`). The sender of the event does not wait for it. Cinder is asked for the
 * size, so a false event changes nothing. If this process ends meanwhile, the guest sees the new size at its next boot. Volumes beyond those that are followed wait; the
 * guests of those beyond these are not told either, which is logged.
 */
export class VolumeExtender {
  readonly #deps: ExtenderDeps;
  readonly #running = new Set<Promise<void>>();
  /** By server and volume. */
  readonly #waiting = new Map<string, readonly [ExtendedVolume, Caller]>();
  readonly #limits: { readonly running: number; readonly waiting: number };
  #isStopped = false;

  constructor(deps: ExtenderDeps, limits = { running: RUNNING_MAX, waiting: WAITING_MAX }) {
    this.#deps = deps;
    this.#limits = limits;
  }

  hear(extended: readonly ExtendedVolume[], askedBy: Caller): void {
    for (const one of extended) {
      const key = `${one.serverUuid} ${one.volumeId}`;
      if (this.#isStopped) this.#leave(one, "the api stops");
      else if (this.#running.size < this.#limits.running) this.#begin(one, askedBy);
      else if (this.#waiting.has(key) || this.#waiting.size < this.#limits.waiting)
        this.#waiting.set(key, [one, askedBy]);
      else this.#leave(one, `${this.#limits.waiting} other extended volumes wait already`);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const [one] of this.#waiting.values()) this.#leave(one, "the api stops");
    this.#waiting.clear();
    await Promise.all(this.#running);
  }

  #begin(one: ExtendedVolume, askedBy: Caller): void {
    const run = this.#follow(one, askedBy)
      .catch((error: unknown) => this.#deps.events.volumeNotExtended(one, error))
      .finally(() => {
        this.#running.delete(run);
        this.#beginNext();
      });
    this.#running.add(run);
  }

  #beginNext(): void {
    const [next] = this.#waiting;
    if (next === undefined || this.#isStopped) return;
    const [key, [one, askedBy]] = next;
    this.#waiting.delete(key);
    this.#begin(one, askedBy);
  }

  #leave(one: ExtendedVolume, why: string): void {
    this.#deps.events.volumeNotExtended(one, new Error(why));
  }

  async #follow(one: ExtendedVolume, askedBy: Caller): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#extend(one, askedBy);
      } catch (error) {
        const mayPass =
          error instanceof BlockStorageError || (error instanceof Fault && [409, 503].includes(error.status));
        if (!mayPass || tries >= TRIES_MAX || this.#isStopped) throw error;
      }
      await new Promise<void>((resolve) => {
        this.#deps.clock.setTimer(AGAIN_MS, resolve);
      });
    }
  }

  async #extend({ serverUuid, volumeId }: ExtendedVolume, askedBy: Caller): Promise<void> {
    const { volumes, store, cells } = this.#deps;
    const row = await attachmentOfServer(volumes, serverUuid, volumeId);
    const [record] = await store.requests([serverUuid]);
    const cell = record?.cell == null ? undefined : cells.get(record.cell);
    if (row === null || record === undefined || cell === undefined) return;
    const answer = await cell.server(serverUuid);
    if (answer.kind !== "answer") throw new Fault(503, `Cell ${cell.name}, where the server lives, does not answer.`);
    const server = answer.value;
    const known = server?.spec.volumes.find((one) => one.volumeId === row.id);
    const sizeGib = await volumes.sizeGibOf(row.id);
    if (server === null || sizeGib === null) return;
    if (known === undefined) {
      if (row.attachment.phase === "detaching") return;
      // Cinder knows of a new attachment before the cell has noted it.
      throw new Fault(409, `Server ${serverUuid} is still being given volume ${row.id}; try again.`);
    }
    const { isMultiattach, replacedBy, file } = known;
    const volume = { ...serverVolumeOf({ ...row, sizeGib }), isMultiattach, replacedBy, file };
    const target = { action: "extend_volume", record, cell, server };
    // If the volume was detached meanwhile, this is tried again, and ends there.
    const after = stillWith(volume, () => new Fault(409, `Volume ${volume.volumeId} was just changed; try again.`));
    await beginInCell(this.#deps, target, { kind: "extend-volume", carrier: {}, askedBy, volume, after });
  }
}
