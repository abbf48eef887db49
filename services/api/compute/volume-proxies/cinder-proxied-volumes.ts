import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { BlockStorage, CinderList, CinderVolume, RemoveOutcome } from "../../../../core/stores/block-storage.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { Fault } from "../../http/fault.ts";
import { volumeNotFound } from "../../volume/change-volumes.ts";
import type {
  ListPart,
  NewProxiedSnapshot,
  NewProxiedVolume,
  ProxiedSnapshot,
  ProxiedVolume,
  ProxiedVolumes,
} from "./proxied-volumes.ts";
import { invalidInput, snapshotNotFound } from "./proxy-faults.ts";

/**
 * The volumes of Cinder, which is asked in the caller's name if callers have tokens of Keystone. Otherwise it is asked in this service's own name, and what it
 * has of other projects is hidden here.
 */
export class CinderProxiedVolumes implements ProxiedVolumes {
  readonly #storage: BlockStorage;
  readonly #store: Pick<VolumeStore, "volumes">;
  readonly #sendsTokens: boolean;

  /** `store` knows the names of the disks that servers have. */
  constructor(
    { storage, store }: { readonly storage: BlockStorage; readonly store: Pick<VolumeStore, "volumes"> },
    { sendsTokens }: { readonly sendsTokens: boolean },
  ) {
    this.#storage = storage;
    this.#store = store;
    this.#sendsTokens = sendsTokens;
  }

  async volumes(part: ListPart, call: KnownCall): Promise<readonly ProxiedVolume[]> {
    const page = { ...part, projectId: call.identity.projectId };
    const found = listOf(await askNeighbour(() => this.#storage.volumes(page, this.#by(call))));
    return this.#shown(found.filter((one) => this.#isOwn(one, call)));
  }

  async volume(id: string, call: KnownCall): Promise<ProxiedVolume | null> {
    const uuid = canonicalUuid(id);
    if (uuid === null) return null;
    const found = await askNeighbour(() => this.#storage.volume(uuid, this.#by(call)));
    if (found === null || !this.#maySee(found, call)) return null;
    return (await this.#shown([found]))[0] ?? null;
  }

  async createVolume({ snapshotId, ...wanted }: NewProxiedVolume, call: KnownCall): Promise<ProxiedVolume> {
    const source = snapshotId === null ? ({ kind: "blank" } as const) : ({ kind: "snapshot", id: snapshotId } as const);
    const outcome = await askNeighbour(() => this.#storage.createVolume({ ...wanted, source }, this.#by(call)));
    switch (outcome.kind) {
      case "created":
        return proxied(outcome.volume, null);
      case "over-quota":
      case "forbidden":
        throw new Fault(403, outcome.why);
      case "refused":
        throw invalidInput(outcome.why);
      default:
        return outcome satisfies never;
    }
  }

  async deleteVolume(id: string, call: KnownCall): Promise<void> {
    await this.#delete(id, volumeNotFound(id), {
      find: () => this.volume(id, call),
      remove: (uuid) => this.#storage.removeVolume(uuid, this.#by(call)),
    });
  }

  async snapshots(part: ListPart, call: KnownCall): Promise<readonly ProxiedSnapshot[]> {
    const page = { ...part, projectId: call.identity.projectId };
    const found = listOf(await askNeighbour(() => this.#storage.snapshots(page, this.#by(call))));
    return found.filter((one) => this.#isOwn(one, call));
  }

  async snapshot(id: string, call: KnownCall): Promise<ProxiedSnapshot | null> {
    const uuid = canonicalUuid(id);
    if (uuid === null) return null;
    const found = await askNeighbour(() => this.#storage.snapshot(uuid, this.#by(call)));
    return found !== null && this.#maySee(found, call) ? found : null;
  }

  async createSnapshot(wanted: NewProxiedSnapshot, call: KnownCall): Promise<ProxiedSnapshot> {
    const { volumeId: id } = wanted;
    if (!this.#sendsTokens && (await this.volume(id, call)) === null) throw volumeNotFound(id);
    const outcome = await askNeighbour(() => this.#storage.createSnapshot(wanted, this.#by(call)));
    switch (outcome.kind) {
      case "created":
        return outcome.snapshot;
      case "unknown":
        throw volumeNotFound(id);
      case "over-quota":
        throw new Fault(403, "Quota exceeded for resources: snapshots");
      case "forbidden":
        throw new Fault(403, outcome.why);
      case "refused":
        throw invalidInput(outcome.why);
      default:
        return outcome satisfies never;
    }
  }

  async deleteSnapshot(id: string, call: KnownCall): Promise<void> {
    await this.#delete(id, snapshotNotFound(id), {
      find: () => this.snapshot(id, call),
      remove: (uuid) => this.#storage.removeSnapshot(uuid, this.#by(call)),
    });
  }

  /** `find` returns null if the caller may not see it. With the login of this service, Cinder would delete what any project has. */
  async #delete(
    id: string,
    notFound: Fault,
    cinder: { find(): Promise<object | null>; remove(uuid: string): Promise<RemoveOutcome> },
  ): Promise<void> {
    const uuid = canonicalUuid(id);
    if (uuid === null || (!this.#sendsTokens && (await cinder.find()) === null)) throw notFound;
    const outcome = await askNeighbour(() => cinder.remove(uuid));
    switch (outcome.kind) {
      case "deleting":
        return;
      case "unknown":
        throw notFound;
      case "forbidden":
        throw new Fault(403, outcome.why);
      case "refused":
        throw invalidInput(outcome.why);
      default:
        outcome satisfies never;
    }
  }

  #by(call: KnownCall) {
    return askedBy({ sendsTokens: this.#sendsTokens }, call);
  }

  /** A list holds only what the caller's project has, also for admins, unless Cinder has judged it. */
  #isOwn({ projectId }: { readonly projectId: string }, { identity }: KnownCall): boolean {
    return this.#sendsTokens || projectId === identity.projectId;
  }

  #maySee(one: { readonly projectId: string }, call: KnownCall): boolean {
    return call.identity.isAdmin || this.#isOwn(one, call);
  }

  async #shown(volumes: readonly CinderVolume[]): Promise<readonly ProxiedVolume[]> {
    const held = volumes.filter(({ attachedTo }) => attachedTo.length > 0).map(({ id }) => id);
    const rows = held.length === 0 ? [] : await this.#store.volumes(held);
    const devices = new Map(
      rows.flatMap(({ id, attachment }) =>
        attachment === null ? [] : [[`${id} ${attachment.serverUuid}`, attachment.device] as const],
      ),
    );
    return volumes.map((volume) => {
      const [first] = volume.attachedTo;
      const device = devices.get(`${volume.id} ${first?.serverUuid}`) ?? "";
      return proxied(volume, first === undefined ? null : { serverUuid: first.serverUuid, device });
    });
  }
}

/** What Cinder lists. A list that its policy does not give to the caller is refused as by Nova (403). */
function listOf<One>(list: CinderList<One>): readonly One[] {
  if (list.kind === "forbidden") throw new Fault(403, list.why);
  return list.found;
}

const proxied = (volume: CinderVolume, holder: ProxiedVolume["holder"]): ProxiedVolume => ({ ...volume, holder });
