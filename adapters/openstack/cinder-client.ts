import type {
  BlockStorage,
  CinderAttachment,
  CinderAttachmentFilter,
  CinderList,
  CinderPage,
  CinderSnapshot,
  CinderVolume,
  CinderVolumesByStatus,
  ConnectVolumeOutcome,
  EndedMigration,
  EndMigrationOutcome,
  MakeSnapshotOutcome,
  MakeVolumeOutcome,
  NewCinderAttachment,
  NewCinderSnapshot,
  NewCinderVolume,
  RefusedConnection,
  Reimage,
  ReimageOutcome,
  RemoveOutcome,
  ReserveVolumeOutcome,
  SnapshotReport,
  SnapshotReportOutcome,
  VolumeConnector,
} from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { type AskedBy, OWN_NAME } from "../../core/stores/networking.ts";
import {
  attachmentOf,
  listedAttachments,
  listedSnapshots,
  listedVolumes,
  newVolumeBody,
  snapshotOf,
  volumeOf,
} from "./cinder-documents.ts";
import type { NeighbourAnswer, NeighbourCall, NeighbourClient } from "./neighbour-client.ts";
import { NeighbourError } from "./neighbour-error.ts";
import { readSnapshotsOf } from "./volume-snapshot-pages.ts";

/** How Cinder is found in the catalogue. Its deletions of attachments are for services only. */
export const CINDER = {
  service: "Cinder",
  types: ["block-storage", "volumev3", "volume"],
  versionPath: "/v3",
  provesService: true,
} as const;
/** The first microversion in which attachments can be finished. Cinder has had it since its release Rocky. */
const MICROVERSION = "volume 3.44";
/** The first microversion in which a volume can be filled with another image. Cinder has had it since its release Yoga. */
const REIMAGE_MICROVERSION = "volume 3.68";
/**
 * Cinder waits up to 60 s for its driver to export a volume, or to end an export (`rpc_response_timeout`). A call that is given up before leaves an export that
 * nobody knows, or one that ends later.
 */
const DRIVER_TIMEOUT_MS = 75_000;
const FORBIDDEN_STATUS = 403;
/** Cinder answers so, with 500, when it does not export a volume. */
const DRIVER_REFUSES = /^Unable to (create|update) (the )?attachment/;
/** Cinder's answer when its driver has failed without a reason, or has not answered in time (`rpc_response_timeout`). */
const NO_REASON = /^Unable to (create attachment for volume|update the attachment)\.$/;
/** Cinder's answer to a caller without the role of services who deletes an attachment that the server shows. */
const NO_SERVICE = /Detach volume from instance .* using the Compute API/;
const NO_SERVICE_ADVICE =
  "Cinder lets only services end the attachments of servers: give the user of BERTH_KEYSTONE_USER the role service in its project, beside admin";
/** A server's attachments, or a volume's: far more than one of them can have. */
const ATTACHMENTS_MAX = 1_000;
const VOLUMES_MAX = 1_000;
/** By this, Cinder's drivers see that the guest's host has done its part in a snapshot. Source: `update_snapshot_status` of Nova's volume API */
const GUESTS_PART_DONE = "90%";
/** Cinder keeps the progress of a deletion that has failed for the next one, which would find 90% before the host has begun. Nova leaves that behind. */
const GUESTS_PART_OPEN = "0%";

/**
 * Cinder over HTTP, of the release Yoga or newer, whose paths need no project.
 *
 * Source: https://docs.openstack.org/api-ref/block-storage/v3/
 */
export class CinderClient implements BlockStorage {
  readonly #client: Pick<NeighbourClient, "call">;

  /** The caller closes the client. */
  constructor(client: Pick<NeighbourClient, "call">) {
    this.#client = client;
  }

  async volume(id: string, by: AskedBy): Promise<CinderVolume | null> {
    try {
      const answer = await this.#call({ method: "GET", path: volumePath(id), ...by, expect: [200] });
      return volumeOf(answer.body);
    } catch (error) {
      const { code } = refusalOf(error);
      if (code === "not-found" || code === "refused") return null;
      throw asFault(error);
    }
  }

  async volumesNamed(name: string): Promise<readonly CinderVolume[]> {
    const query = new URLSearchParams({ all_tenants: "1", name, limit: `${VOLUMES_MAX}` });
    try {
      const found = await this.#call({ method: "GET", path: `/volumes/detail?${query}`, ...OWN_NAME, expect: [200] });
      // Volumes are deleted because they are in this list, so it does not rest on Cinder's filter alone.
      return listedVolumes(found.body).filter((volume) => volume.name === name);
    } catch (error) {
      throw asFault(error);
    }
  }

  async volumesWithStatus({ status, after, limit }: CinderVolumesByStatus): Promise<readonly CinderVolume[]> {
    const query = new URLSearchParams({ all_tenants: "1", status, limit: `${limit}` });
    if (after !== null) query.set("marker", after);
    try {
      const found = await this.#call({ method: "GET", path: `/volumes/detail?${query}`, ...OWN_NAME, expect: [200] });
      return listedVolumes(found.body);
    } catch (error) {
      throw asFault(error);
    }
  }

  async snapshotsOf(volumeId: string): Promise<readonly CinderSnapshot[]> {
    try {
      return await readSnapshotsOf(volumeId, (path) => this.#call({ method: "GET", path, ...OWN_NAME, expect: [200] }));
    } catch (error) {
      throw asFault(error);
    }
  }

  volumes(page: CinderPage, by: AskedBy): Promise<CinderList<CinderVolume>> {
    return this.#page("volumes", listedVolumes, page, by);
  }

  snapshots(page: CinderPage, by: AskedBy): Promise<CinderList<CinderSnapshot>> {
    return this.#page("snapshots", listedSnapshots, page, by);
  }

  /** Reads a page of a list with details. In this service's own name, Cinder lists all projects, of which one is asked for. */
  async #page<One>(
    collection: string,
    read: (body: unknown) => readonly One[],
    { projectId, offset, limit }: CinderPage,
    by: AskedBy,
  ): Promise<CinderList<One>> {
    const query = new URLSearchParams({ offset: `${offset}`, limit: `${limit}` });
    if (by.callerToken === null) {
      query.set("all_tenants", "1");
      query.set("project_id", projectId);
    }
    try {
      const path = `/${collection}/detail?${query}`;
      const { body } = await this.#call({ method: "GET", path, ...by, expect: [200] });
      return { kind: "listed", found: read(body) };
    } catch (error) {
      const { status, why } = refusalOf(error);
      if (status === FORBIDDEN_STATUS) return { kind: "forbidden", why };
      throw asFault(error);
    }
  }

  async createSnapshot(wanted: NewCinderSnapshot, by: AskedBy): Promise<MakeSnapshotOutcome> {
    const { volumeId: volume_id, name, description, force, metadata = {} } = wanted;
    try {
      const body = { snapshot: { volume_id, name, description, force, metadata } };
      const answer = await this.#call({ method: "POST", path: "/snapshots", body, ...by, expect: [200, 202] });
      return { kind: "created", snapshot: snapshotOf(answer.body) };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.code === "not-found") return { kind: "unknown" };
      if (refusal.code === "over-quota") return { kind: "over-quota", why: refusal.why };
      return declined(refusal);
    }
  }

  async removeSnapshot(id: string, by: AskedBy): Promise<RemoveOutcome> {
    return this.#remove(snapshotPath(id), by);
  }

  async removeVolume(id: string, by: AskedBy): Promise<RemoveOutcome> {
    return this.#remove(volumePath(id), by);
  }

  async #remove(path: string, by: AskedBy): Promise<RemoveOutcome> {
    try {
      await this.#call({ method: "DELETE", path, ...by, expect: [202, 204] });
      return { kind: "deleting" };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.code === "not-found") return { kind: "unknown" };
      return declined(refusal);
    }
  }

  async snapshot(id: string, by: AskedBy): Promise<CinderSnapshot | null> {
    try {
      return snapshotOf((await this.#call({ method: "GET", path: snapshotPath(id), ...by, expect: [200] })).body);
    } catch (error) {
      const { code } = refusalOf(error);
      if (code === "not-found" || code === "refused") return null;
      throw asFault(error);
    }
  }

  async reportSnapshot({ snapshotId, status, isDone }: SnapshotReport): Promise<SnapshotReportOutcome> {
    const progress = isDone ? GUESTS_PART_DONE : GUESTS_PART_OPEN;
    const body = { "os-update_snapshot_status": { status, progress } };
    const path = `${snapshotPath(snapshotId)}/action`;
    try {
      await this.#call({ method: "POST", path, body, ...OWN_NAME, expect: [202], isRepeatable: true });
      return { kind: "taken" };
    } catch (error) {
      return { kind: "refused", why: refusalOf(error).why };
    }
  }

  async createVolume(volume: NewCinderVolume, by: AskedBy): Promise<MakeVolumeOutcome> {
    try {
      const body = { volume: newVolumeBody(volume) };
      const answer = await this.#call({ method: "POST", path: "/volumes", body, ...by, expect: [200, 202] });
      return { kind: "created", volume: volumeOf(answer.body) };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.code === "over-quota") return { kind: "over-quota", why: refusal.why };
      return declined(refusal);
    }
  }

  async deleteVolume(id: string) {
    try {
      await this.#call({ method: "DELETE", path: volumePath(id), ...OWN_NAME, expect: [202, 204], isRepeatable: true });
      return { kind: "deleted" } as const;
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.code === "not-found") return { kind: "deleted" } as const;
      return { kind: "refused", why: refusal.why } as const;
    }
  }

  async reserve({ volumeId, serverUuid, connector }: NewCinderAttachment, by: AskedBy): Promise<ReserveVolumeOutcome> {
    const attachment = {
      ...{ volume_uuid: volumeId, instance_uuid: serverUuid },
      ...(connector !== null && { connector: connectorBody(connector) }),
    };
    try {
      const body = { attachment };
      const patience = connector === null ? {} : { timeoutMs: DRIVER_TIMEOUT_MS };
      const post = { method: "POST", path: "/attachments", body, ...by, ...patience, expect: [200, 202] } as const;
      const answer = await this.#call(post);
      return { kind: "reserved", attachment: attachmentOf(answer.body) };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal.code === "not-found") return { kind: "unknown" };
      if (refusal.status === FORBIDDEN_STATUS) return { kind: "forbidden", why: refusal.why };
      return refusedConnection(refusal);
    }
  }

  async attachments({
    serverUuid,
    volumeId,
    after = null,
    limit = ATTACHMENTS_MAX,
  }: CinderAttachmentFilter): Promise<readonly CinderAttachment[]> {
    const query = new URLSearchParams({ all_tenants: "1", limit: `${limit}` });
    if (after !== null) query.set("marker", after);
    if (serverUuid !== undefined) query.set("instance_id", serverUuid);
    if (volumeId !== undefined) query.set("volume_id", volumeId);
    try {
      const path = `/attachments/detail?${query}`;
      const found = listedAttachments((await this.#call({ method: "GET", path, ...OWN_NAME, expect: [200] })).body);
      // Attachments are ended because they are in this list, so it does not rest on Cinder's filter alone.
      return found.filter(
        (one) => (serverUuid ?? one.serverUuid) === one.serverUuid && (volumeId ?? one.volumeId) === one.volumeId,
      );
    } catch (error) {
      throw asFault(error);
    }
  }

  async attachment(attachmentId: string): Promise<CinderAttachment | null> {
    try {
      const path = attachmentPath(attachmentId);
      return attachmentOf((await this.#call({ method: "GET", path, ...OWN_NAME, expect: [200] })).body);
    } catch (error) {
      if (refusalOf(error).code === "not-found") return null;
      throw asFault(error);
    }
  }

  async connect(attachmentId: string, connector: VolumeConnector): Promise<ConnectVolumeOutcome> {
    try {
      const body = { attachment: { connector: connectorBody(connector) } };
      const put = { method: "PUT", path: attachmentPath(attachmentId), body, ...OWN_NAME, expect: [200] } as const;
      const { body: connected } = await this.#call({ ...put, timeoutMs: DRIVER_TIMEOUT_MS });
      return { kind: "connected", attachment: attachmentOf(connected) };
    } catch (error) {
      const refusal = refusalOf(error);
      return refusal.code === "not-found" ? { kind: "gone" } : refusedConnection(refusal);
    }
  }

  async complete(attachmentId: string): Promise<boolean> {
    const path = `${attachmentPath(attachmentId)}/action`;
    const body = { "os-complete": null };
    try {
      await this.#call({ method: "POST", path, body, ...OWN_NAME, expect: [200, 202, 204], isRepeatable: true });
      return true;
    } catch (error) {
      if (refusalOf(error).code === "not-found") return false;
      throw asFault(error);
    }
  }

  async endMigration({ volumeId, targetId, hasFailed }: EndedMigration): Promise<EndMigrationOutcome> {
    const body = { "os-migrate_volume_completion": { new_volume: targetId, error: hasFailed } };
    const request = { method: "POST", path: `${volumePath(volumeId)}/action`, body, ...OWN_NAME } as const;
    try {
      await this.#call({ ...request, expect: [200, 202], timeoutMs: DRIVER_TIMEOUT_MS });
      return { kind: "ended" };
    } catch (error) {
      return { kind: "refused", why: refusalOf(error).why };
    }
  }

  async reimage({ volumeId, imageId }: Reimage): Promise<ReimageOutcome> {
    const body = { "os-reimage": { image_id: imageId, reimage_reserved: true } };
    const request = { method: "POST", path: `${volumePath(volumeId)}/action`, body, ...OWN_NAME } as const;
    try {
      await this.#call({ ...request, expect: [202] }, REIMAGE_MICROVERSION);
      return { kind: "begun" };
    } catch (error) {
      // If a policy does not let Berth's user do this, Cinder has not touched the volume either, so it counts as a refusal.
      if (error instanceof BlockStorageError && error.code === "refused")
        return { kind: "refused", why: error.message };
      return { kind: "refused", why: refusalOf(error).why };
    }
  }

  async deleteAttachment(attachmentId: string): Promise<void> {
    const path = attachmentPath(attachmentId);
    const request = { method: "DELETE", path, ...OWN_NAME, expect: [200, 202, 204] } as const;
    try {
      // Cinder waits for its driver here, too. It is not asked a second time meanwhile, because each call is more work for a driver that is slow already.
      await this.#call({ ...request, timeoutMs: DRIVER_TIMEOUT_MS });
    } catch (error) {
      const { code, message, explanation } = refusalOf(error);
      if (code === "not-found") return;
      if (code === "conflict" && NO_SERVICE.test(explanation ?? ""))
        throw new BlockStorageError("bad-answer", `${message}. ${NO_SERVICE_ADVICE}`);
      throw asFault(error);
    }
  }

  /** Throws `NeighbourError` for refusals that the caller may expect, and `BlockStorageError` for everything else. */
  async #call(call: Omit<NeighbourCall, "headers">, microversion = MICROVERSION): Promise<NeighbourAnswer> {
    try {
      return await this.#client.call({ ...call, headers: { "openstack-api-version": microversion } });
    } catch (error) {
      if (!(error instanceof NeighbourError)) throw error;
      const { code, message } = error;
      if (error.status === 500 && DRIVER_REFUSES.test(error.explanation ?? "")) throw error;
      // Cinder's policy judges the caller. With the login of this service, the same answer is the operator's affair.
      if (call.callerToken !== null && error.status === FORBIDDEN_STATUS) throw error;
      if (code === "unreachable" || code === "refused" || code === "bad-answer")
        throw new BlockStorageError(code, message);
      throw error;
    }
  }
}

const volumePath = (id: string): string => `/volumes/${encodeURIComponent(id)}`;
const snapshotPath = (id: string): string => `/snapshots/${encodeURIComponent(id)}`;
const attachmentPath = (id: string): string => `/attachments/${encodeURIComponent(id)}`;

/** The form in which Cinder's drivers take a host. Source: `get_connector_properties` of os-brick. */
const connectorBody = ({ host, initiator }: VolumeConnector) => ({
  ...{ host, initiator, multipath: false, platform: "x86_64", os_type: "linux", do_local_attach: false, mode: "rw" },
});

const refusedConnection = ({ why, explanation }: NeighbourError): RefusedConnection => ({
  ...{ kind: "refused", why },
  ...(NO_REASON.test(explanation ?? "") && { isVague: true }),
});

/** The refusal as an outcome. Cinder's policy forbids it, or Cinder does not take it. */
const declined = ({ status, why }: NeighbourError) =>
  ({ kind: status === FORBIDDEN_STATUS ? "forbidden" : "refused", why }) as const;

/** Returns the refusal. Throws every other error. */
function refusalOf(error: unknown): NeighbourError {
  if (error instanceof NeighbourError) return error;
  throw error;
}

/** The error of a question for which no refusal is expected, so Cinder did not understand it. */
const asFault = (error: unknown): unknown =>
  error instanceof NeighbourError ? new BlockStorageError("bad-answer", error.message) : error;
