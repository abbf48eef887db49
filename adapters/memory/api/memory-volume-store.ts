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

type Stored = Omit<VolumeRecord, "attachment"> & {
  readonly attachment:
    | (Omit<VolumeAttachment, "phaseAgeMs"> & { readonly phaseAtMs: number; readonly turn: number })
    | null;
};

/** The in-process twin of the table of volumes. It works over the store that holds the requests. */
export class MemoryVolumeStore implements VolumeStore {
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
    return [...new Set(ids)].flatMap((id) => this.#volumes.get(id) ?? []).map((volume) => this.#shown(volume));
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
    if (volume === undefined) return "unknown";
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
    const isTaken = [...this.#volumes.values()].some(
      (other) =>
        other.attachment?.serverUuid === attachment.serverUuid && other.attachment.device === attachment.device,
    );
    if (isTaken) return "device-taken";
    this.#turn += 1;
    const phase = { phase: "attaching", phaseAtMs: this.#clock.now(), attachedAtMs: null, turn: this.#turn } as const;
    this.#volumes.set(id, { ...volume, attachment: { ...attachment, ...phase } });
    return "reserved";
  }

  async beginDetaching(id: string, of: { readonly serverUuid: string; readonly taskId: string }): Promise<boolean> {
    const attachment = this.#volumes.get(id)?.attachment;
    if (attachment?.phase !== "attached" || attachment.serverUuid !== of.serverUuid) return false;
    const since = { phase: "detaching", phaseAtMs: this.#clock.now(), taskId: of.taskId } as const;
    return this.#put(id, { ...attachment, ...since }, { making: null });
  }

  async confirmAttached(id: string, taskId: string, nowMs: number, cell?: string): Promise<boolean> {
    const attachment = this.#volumes.get(id)?.attachment;
    if (attachment?.taskId !== taskId) return false;
    const attachedAtMs = attachment.attachedAtMs ?? nowMs;
    const since = { phase: "attached", phaseAtMs: this.#clock.now(), attachedAtMs } as const;
    return this.#put(id, { ...attachment, ...since, taskId: null, cell: cell ?? attachment.cell }, { making: null });
  }

  async release(id: string, taskId: string): Promise<boolean> {
    const volume = this.#volumes.get(id);
    if (volume?.attachment?.taskId !== taskId) return false;
    return isBuiltWith(volume.making, volume.attachment) ? this.#volumes.delete(id) : this.#put(id, null);
  }

  async setAttachmentId(
    id: string,
    of: { readonly serverUuid: string; readonly attachmentId: string },
  ): Promise<boolean> {
    const attachment = this.#volumes.get(id)?.attachment;
    if (attachment?.serverUuid !== of.serverUuid) return false;
    return this.#put(id, { ...attachment, attachmentId: of.attachmentId });
  }

  async setDeleteOnTermination(id: string, serverUuid: string, value: boolean): Promise<boolean> {
    const attachment = this.#volumes.get(id)?.attachment;
    if (attachment?.serverUuid !== serverUuid) return false;
    return this.#put(id, { ...attachment, deleteOnTermination: value });
  }

  async sweepEnded(range: SweptVolumes): Promise<SweepOutcome> {
    const page = this.#swept(range);
    const open = page.flatMap(({ id, attachment }) =>
      attachment !== null && (attachment.phase === "attached" || attachment.taskId !== null) ? { id, attachment } : [],
    );
    const records = await this.#requests.requests(open.map(({ attachment }) => attachment.serverUuid));
    const known = new Map(records.map((record) => [record.serverUuid, record]));
    const isMade = (id: string) => (this.#volumes.get(id)?.making ?? null) !== null;
    const over = open.filter(({ attachment: { serverUuid, taskId } }) => {
      const record = known.get(serverUuid);
      return record === undefined ? taskId !== serverUuid : record.state === "deleted";
    });
    for (const { id, attachment } of over) {
      const cell = attachment.cell || (known.get(attachment.serverUuid)?.cell ?? "");
      const deleteOnTermination = attachment.deleteOnTermination && (attachment.phase === "attached" || isMade(id));
      const since = { phase: "detaching", phaseAtMs: this.#clock.now(), taskId: null } as const;
      this.#put(id, { ...attachment, ...since, cell, deleteOnTermination });
    }
    const isFull = "limit" in range && page.length === range.limit;
    return { ended: over.length, next: isFull ? (page.at(-1)?.id ?? null) : null };
  }

  #swept(range: SweptVolumes): readonly Stored[] {
    const taken = [...this.#volumes.values()].filter(({ attachment }) => attachment !== null);
    if ("servers" in range)
      return taken.filter(({ attachment }) => range.servers.includes(attachment?.serverUuid ?? ""));
    return taken
      .filter(({ id }) => range.after === null || id > range.after)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, range.limit);
  }

  async unsettled(after: string | null, limit: number): Promise<readonly VolumeRecord[]> {
    return [...this.#volumes.values()]
      .filter(
        ({ id, attachment }) =>
          attachment !== null && attachment.phase !== "attached" && (after === null || id > after),
      )
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit)
      .map((volume) => this.#shown(volume));
  }

  async endAttachment(id: string, attachmentId: string, neverRan: boolean): Promise<"deleted" | "released" | null> {
    const volume = this.#volumes.get(id);
    if (volume?.attachment?.attachmentId !== attachmentId) return null;
    const ends = volume.attachment.deleteOnTermination || (volume.making !== null && neverRan);
    if (ends) this.#volumes.delete(id);
    else this.#put(id, null);
    return ends ? "deleted" : "released";
  }

  #usageOf(projectId: string): VolumeUsage {
    const owned = [...this.#volumes.values()].filter((volume) => volume.projectId === projectId);
    return { volumes: owned.length, gib: owned.reduce((sum, { sizeGib }) => sum + sizeGib, 0) };
  }

  #put(id: string, attachment: Stored["attachment"], changes: { readonly making?: null } = {}): boolean {
    const volume = this.#volumes.get(id);
    const making = attachment === null ? { making: null } : changes;
    if (volume !== undefined) this.#volumes.set(id, { ...volume, ...making, attachment });
    return volume !== undefined;
  }

  #shown({ attachment, ...volume }: Stored): VolumeRecord {
    if (attachment === null) return { ...volume, attachment };
    const { phaseAtMs, turn: _turn, ...rest } = attachment;
    return { ...volume, attachment: { ...rest, phaseAgeMs: Math.max(0, this.#clock.now() - phaseAtMs) } };
  }
}

function inListOrder(a: Pick<VolumeRecord, "id" | "createdAtMs">, b: Pick<VolumeRecord, "id" | "createdAtMs">): number {
  return b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : a.id === b.id ? 0 : 1);
}
