import type { ApiStore } from "../../../core/stores/api/api-store.ts";
import {
  type CreateVolumeOutcome,
  isBuiltWith,
  type MadeVolume,
  type NewAttachment,
  type NewVolume,
  type ReserveOutcome,
  type SweepOutcome,
  type SweptVolumes,
  type VolumeAttachment,
  type VolumeChanges,
  type VolumeQuery,
  type VolumeRecord,
  type VolumeStore,
  type VolumeUsage,
} from "../../../core/stores/api/volume-store.ts";
import type { Clock } from "../../../runtime/clock.ts";

type StoredAttachment = Omit<VolumeAttachment, "phaseAgeMs"> & {
  readonly phaseAtMs: number;
  readonly turn: number;
  readonly held?: Held;
};
/** The end of an attachment is held by one process. */
interface Held {
  readonly holder: string;
  readonly untilMs: number;
}
type Stored = Omit<VolumeRecord, "attachment"> & { readonly attachment: StoredAttachment | null };
type Taken = Stored & { readonly key: string; readonly attachment: StoredAttachment };

/** The in-process twin of the table of volumes. It works over the store that holds the requests. */
export class MemoryVolumeStore implements VolumeStore {
  /** By the id of the volume, and for a shared one by its id and its server's. */
  readonly #volumes = new Map<string, Stored>();
  readonly #clock: Pick<Clock, "now">;
  readonly #requests: Pick<ApiStore, "requests">;
  #turn = 0;

  constructor(clock: Pick<Clock, "now">, deps: { readonly requests: Pick<ApiStore, "requests"> }) {
    this.#clock = clock;
    this.#requests = deps.requests;
  }

  async createVolume(
    volume: NewVolume,
    limits: VolumeUsage | null,
    attachment?: NewAttachment,
  ): Promise<CreateVolumeOutcome> {
    const used = this.#usageOf(volume.projectId);
    if (limits !== null && used.volumes + 1 > limits.volumes)
      return { kind: "over-limit", limit: "volumes", used: used.volumes };
    if (limits !== null && used.gib + volume.sizeGib > limits.gib)
      return { kind: "over-limit", limit: "gib", used: used.gib };
    this.#volumes.set(volume.id, { ...structuredClone(volume), updatedAtMs: null, attachment: null });
    if (attachment !== undefined) await this.reserve(volume.id, attachment);
    return { kind: "created" };
  }

  async setMade(id: string, made: MadeVolume): Promise<boolean> {
    const volume = this.#volumes.get(id);
    if (volume?.making !== "asked" || this.#volumes.has(made.id)) return false;
    this.#volumes.delete(id);
    this.#volumes.set(made.id, { ...volume, ...made, making: "made" });
    return true;
  }

  async copyVolume(volume: NewVolume): Promise<boolean> {
    const present = this.#volumes.get(volume.id);
    if (present === undefined || (present.inCinder && present.attachment === null))
      this.#volumes.set(volume.id, { ...structuredClone(volume), updatedAtMs: null, attachment: null });
    return present?.inCinder ?? true;
  }

  async volumes(ids: readonly string[]): Promise<readonly VolumeRecord[]> {
    return [...this.#volumes.values()].filter(({ id }) => ids.includes(id)).map((volume) => this.#shown(volume));
  }

  async listVolumes({
    projectId,
    name,
    phase,
    after,
    offset = 0,
    limit,
  }: VolumeQuery): Promise<readonly VolumeRecord[]> {
    const found = [...this.#volumes.values()].filter(
      (volume) =>
        (projectId === null || volume.projectId === projectId) &&
        (name === undefined || volume.name === name) &&
        (phase === undefined || (volume.attachment?.phase ?? "available") === phase) &&
        (after === undefined || inListOrder(after, volume) < 0),
    );
    return found
      .sort(inListOrder)
      .slice(offset, offset + limit)
      .map((volume) => this.#shown(volume));
  }

  async usage(projectId: string): Promise<VolumeUsage> {
    return this.#usageOf(projectId);
  }

  async updateVolume(
    id: string,
    change: (volume: VolumeRecord) => VolumeChanges,
    nowMs: number,
  ): Promise<VolumeRecord | null> {
    const volume = this.#volumes.get(id);
    if (volume === undefined) return null;
    const changed = { ...volume, ...structuredClone(change(this.#shown(volume))), updatedAtMs: nowMs };
    this.#volumes.set(id, changed);
    return this.#shown(changed);
  }

  async deleteVolume(id: string): Promise<"deleted" | "taken" | "unknown"> {
    const volume = this.#volumes.get(id);
    if (volume === undefined) return (await this.volumes([id])).length > 0 ? "taken" : "unknown";
    if (volume.attachment !== null) return "taken";
    this.#volumes.delete(id);
    return "deleted";
  }

  async volumesOfServers(serverUuids: readonly string[]): Promise<readonly VolumeRecord[]> {
    return [...this.#volumes.values()]
      .filter(({ attachment }) => attachment !== null && serverUuids.includes(attachment.serverUuid))
      .sort((a, b) => (a.attachment?.turn ?? 0) - (b.attachment?.turn ?? 0))
      .map((volume) => this.#shown(volume));
  }

  async reserve(id: string, attachment: NewAttachment): Promise<ReserveOutcome> {
    const volume = this.#volumes.get(id);
    if (volume === undefined) return "unknown";
    if (volume.attachment !== null) return "taken";
    return this.#attach(id, volume, attachment);
  }

  async reserveShared(volume: NewVolume, attachment: NewAttachment): Promise<Exclude<ReserveOutcome, "unknown">> {
    if (this.#find(volume.id, ({ serverUuid }) => serverUuid === attachment.serverUuid) !== null) return "taken";
    const copy = { ...structuredClone(volume), making: null, updatedAtMs: null, attachment: null };
    return this.#attach(`${volume.id} ${attachment.serverUuid}`, copy, attachment);
  }

  #attach(key: string, volume: Stored, attachment: NewAttachment): "reserved" | "device-taken" {
    const isTaken = [...this.#volumes.values()].some(
      (other) =>
        other.attachment?.serverUuid === attachment.serverUuid && other.attachment.device === attachment.device,
    );
    if (isTaken) return "device-taken";
    this.#turn += 1;
    const phase = { phase: "attaching", phaseAtMs: this.#clock.now(), attachedAtMs: null, turn: this.#turn } as const;
    this.#volumes.set(key, { ...volume, attachment: { ...attachment, ...phase } });
    return "reserved";
  }

  /** The record of the volume whose attachment is the one that is meant. */
  #find(id: string, isMeant: (attachment: StoredAttachment) => boolean): Taken | null {
    for (const [key, volume] of this.#volumes) {
      const { attachment } = volume;
      if (volume.id === id && attachment !== null && isMeant(attachment)) return { ...volume, key, attachment };
    }
    return null;
  }

  async renewReserved(serverUuids: readonly string[]): Promise<void> {
    for (const [key, { attachment }] of this.#volumes) {
      if (attachment?.phase !== "attaching" || attachment.taskId !== attachment.serverUuid) continue;
      if (serverUuids.includes(attachment.serverUuid)) this.#put(key, { ...attachment, phaseAtMs: this.#clock.now() });
    }
  }

  async beginDetaching(id: string, of: { readonly serverUuid: string; readonly taskId: string }): Promise<boolean> {
    const taken = this.#find(id, ({ serverUuid, phase }) => serverUuid === of.serverUuid && phase === "attached");
    if (taken === null) return false;
    const since = { phase: "detaching", phaseAtMs: this.#clock.now(), taskId: of.taskId } as const;
    return this.#put(taken.key, { ...taken.attachment, ...since }, { making: null });
  }

  async confirmAttached(id: string, taskId: string, nowMs: number, cell?: string): Promise<boolean> {
    const taken = this.#find(id, (attachment) => attachment.taskId === taskId);
    if (taken === null) return false;
    const { key, attachment } = taken;
    const attachedAtMs = attachment.attachedAtMs ?? nowMs;
    const since = { phase: "attached", phaseAtMs: this.#clock.now(), attachedAtMs } as const;
    return this.#put(key, { ...attachment, ...since, taskId: null, cell: cell ?? attachment.cell }, { making: null });
  }

  async release(id: string, taskId: string): Promise<boolean> {
    const taken = this.#find(id, (attachment) => attachment.taskId === taskId);
    if (taken === null) return false;
    return isBuiltWith(taken.making, taken.attachment) ? this.#volumes.delete(taken.key) : this.#free(taken);
  }

  async setAttachmentId(
    id: string,
    of: { readonly serverUuid: string; readonly attachmentId: string },
  ): Promise<boolean> {
    const taken = this.#find(id, ({ serverUuid }) => serverUuid === of.serverUuid);
    return taken !== null && this.#put(taken.key, { ...taken.attachment, attachmentId: of.attachmentId });
  }

  async setDeleteOnTermination(id: string, serverUuid: string, value: boolean): Promise<boolean> {
    const taken = this.#find(id, (attachment) => attachment.serverUuid === serverUuid);
    return taken !== null && this.#put(taken.key, { ...taken.attachment, deleteOnTermination: value });
  }

  async sweepEnded(range: SweptVolumes): Promise<SweepOutcome> {
    const page = this.#swept(range);
    const open = page.filter(({ attachment }) => attachment.phase === "attached" || attachment.taskId !== null);
    const records = await this.#requests.requests(open.map(({ attachment }) => attachment.serverUuid));
    const known = new Map(records.map((record) => [record.serverUuid, record]));
    const over = open.filter(({ attachment: { serverUuid, taskId } }) => {
      const record = known.get(serverUuid);
      return record === undefined ? taskId !== serverUuid : record.state === "deleted";
    });
    for (const { key, making, attachment } of over) {
      const cell = attachment.cell || (known.get(attachment.serverUuid)?.cell ?? "");
      const deleteOnTermination =
        attachment.deleteOnTermination && (attachment.phase === "attached" || making !== null);
      const since = { phase: "detaching", phaseAtMs: this.#clock.now(), taskId: null } as const;
      this.#put(key, { ...attachment, ...since, cell, deleteOnTermination });
    }
    const isFull = "limit" in range && page.length === range.limit;
    return { ended: over.length, next: isFull ? (page.at(-1)?.key ?? null) : null };
  }

  #swept(range: SweptVolumes): readonly Taken[] {
    const taken = [...this.#volumes].flatMap(([key, { attachment, ...volume }]) =>
      attachment === null ? [] : { ...volume, key, attachment },
    );
    if ("servers" in range) return taken.filter(({ attachment }) => range.servers.includes(attachment.serverUuid));
    return taken
      .filter(({ key }) => range.after === null || key > range.after)
      .sort((a, b) => (a.key < b.key ? -1 : 1))
      .slice(0, range.limit);
  }

  async unsettled(after: string | null, limit: number): Promise<readonly VolumeRecord[]> {
    const found = [...this.#volumes.values()]
      .filter(
        ({ id, attachment }) =>
          attachment !== null && attachment.phase !== "attached" && (after === null || id > after),
      )
      .sort((a, b) => (a.id < b.id ? -1 : a.id === b.id ? 0 : 1));
    const last = found[limit - 1]?.id;
    return found.filter(({ id }, at) => at < limit || id === last).map((volume) => this.#shown(volume));
  }

  async holdEnd(
    id: string,
    attachmentId: string,
    { holder, ms }: { readonly holder: string; readonly ms: number },
  ): Promise<boolean> {
    const taken = this.#find(id, (attachment) => attachment.attachmentId === attachmentId);
    const held = taken?.attachment.held;
    const nowMs = this.#clock.now();
    if (taken === null || (held !== undefined && held.holder !== holder && held.untilMs >= nowMs)) return false;
    return this.#put(taken.key, { ...taken.attachment, held: { holder, untilMs: nowMs + ms } });
  }

  async endAttachment(id: string, attachmentId: string, neverRan: boolean): Promise<"deleted" | "released" | null> {
    const taken = this.#find(id, (attachment) => attachment.attachmentId === attachmentId);
    if (taken === null) return null;
    const ends = taken.attachment.deleteOnTermination || (taken.making !== null && neverRan);
    if (ends) this.#volumes.delete(taken.key);
    else this.#free(taken);
    return ends ? "deleted" : "released";
  }

  /** A copy of a shared volume ends with its attachment. */
  #free({ key, id }: Taken): boolean {
    return key === id ? this.#put(key, null) : this.#volumes.delete(key);
  }

  #usageOf(projectId: string): VolumeUsage {
    const owned = [...this.#volumes.values()].filter((volume) => volume.projectId === projectId);
    return { volumes: owned.length, gib: owned.reduce((sum, { sizeGib }) => sum + sizeGib, 0) };
  }

  #put(key: string, attachment: StoredAttachment | null, changes: { readonly making?: null } = {}): boolean {
    const volume = this.#volumes.get(key);
    const making = attachment === null ? { making: null } : changes;
    if (volume !== undefined) this.#volumes.set(key, { ...volume, ...making, attachment });
    return volume !== undefined;
  }

  #shown({ attachment, ...volume }: Stored): VolumeRecord {
    if (attachment === null) return { ...volume, attachment };
    const { phaseAtMs, turn: _turn, held: _held, ...rest } = attachment;
    return { ...volume, attachment: { ...rest, phaseAgeMs: Math.max(0, this.#clock.now() - phaseAtMs) } };
  }
}

function inListOrder(a: Pick<VolumeRecord, "id" | "createdAtMs">, b: Pick<VolumeRecord, "id" | "createdAtMs">): number {
  return b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : a.id === b.id ? 0 : 1);
}
