import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import type {
  CinderAttachment,
  CinderPage,
  CinderSnapshot,
  CinderVolume,
  VolumeSource,
} from "../../core/stores/block-storage.ts";
import { type FakeAnswer, type FakeNeighbour, SERVICE_TOKEN, startFakeNeighbour } from "./fake-neighbour.ts";

type Body = ReturnType<typeof JSON.parse>;

/**
 * Starts the part of Cinder's API that Berth uses, over the in-process twin. Its answers have the form of those of Cinder 21.3. The URL is as the catalogue has
 * it, with a project's id at its end.
 */
export async function startFakeCinder(twin: MemoryBlockStorage): Promise<FakeNeighbour> {
  const fake = await startFakeNeighbour((request) => answer(twin, request));
  return { ...fake, url: `${fake.url}/v3/0123456789abcdef` };
}

async function answer(twin: MemoryBlockStorage, request: IncomingMessage): Promise<FakeAnswer> {
  const url = new URL(request.url ?? "", "http://cinder");
  const token = request.headers["x-auth-token"];
  if (typeof token !== "string") return { status: 401, body: { error: { message: "no token" } } };
  const version = request.headers["openstack-api-version"];
  if (version !== "volume 3.44" && version !== "volume 3.68") return refusal(404, "itemNotFound", "too old");
  const by = { callerToken: token === SERVICE_TOKEN ? null : token, requestId: null };
  const body: Body = request.method === "POST" || request.method === "PUT" ? JSON.parse(await text(request)) : {};
  const [, collection, id, action] =
    /^\/v3\/(volumes|attachments|snapshots)(?:\/([^/]+))?(\/action)?$/.exec(url.pathname) ?? [];
  switch (`${request.method} ${collection}${id === undefined ? "" : "/id"}${action ?? ""}`) {
    case "GET snapshots/id": {
      if (id === "detail") {
        const volumeId = url.searchParams.get("volume_id");
        if (volumeId !== null && by.callerToken === null)
          return { status: 200, body: { snapshots: (await twin.snapshotsOf(volumeId)).map(snapshotDocument) } };
        const list = await twin.snapshots(pageOf(url.searchParams), by);
        if (list.kind === "forbidden") return refusal(403, "forbidden", list.why);
        return { status: 200, body: { snapshots: list.found.map(snapshotDocument) } };
      }
      const snapshot = await twin.snapshot(id!, by);
      return snapshot === null ? noSnapshot(id!) : { status: 200, body: { snapshot: snapshotDocument(snapshot) } };
    }
    case "POST snapshots":
      return snapshotted(twin, body.snapshot, by);
    case "POST snapshots/id/action":
      return reported(twin, id!, body["os-update_snapshot_status"]);
    case "DELETE snapshots/id": {
      const outcome = await twin.removeSnapshot(id!, by);
      if (outcome.kind === "refused") return refusal(400, "badRequest", outcome.why);
      return outcome.kind === "deleting" ? { status: 202 } : noSnapshot(id!);
    }
    case "GET volumes/id":
      return shown(twin, id!, url.searchParams, by);
    case "POST volumes":
      return created(twin, body.volume, by);
    case "POST volumes/id/action":
      if (body["os-reimage"] !== undefined && version === "volume 3.68") return filled(twin, id!, body["os-reimage"]);
      return migrated(twin, id!, body["os-migrate_volume_completion"]);
    case "DELETE volumes/id": {
      const outcome = await twin.removeVolume(id!, by);
      if (outcome.kind === "deleting") return { status: 202 };
      return outcome.kind === "unknown" ? noVolume(id!) : refusal(400, "badRequest", outcome.why);
    }
    case "GET attachments/id": {
      if (id === "detail") return listed(twin, url.searchParams);
      const attachment = await twin.attachment(id!);
      return attachment === null
        ? noAttachment(id!)
        : { status: 200, body: { attachment: attachmentDocument(attachment) } };
    }
    case "POST attachments":
      return reserved(twin, body.attachment, by);
    case "PUT attachments/id": {
      const outcome = await twin.connect(id!, body.attachment.connector);
      if (outcome.kind === "connected")
        return { status: 200, body: { attachment: attachmentDocument(outcome.attachment) } };
      if (outcome.kind === "gone") return noAttachment(id!);
      return refusal(500, "computeFault", `Unable to update attachment.(${outcome.why}).`);
    }
    case "POST attachments/id/action":
      return (await twin.complete(id!)) ? { status: 204 } : noAttachment(id!);
    case "DELETE attachments/id":
      return ended(twin, id!, request.headers["x-service-token"]);
    default:
      return refusal(404, "itemNotFound", "The resource could not be found.");
  }
}

type By = Parameters<MemoryBlockStorage["volume"]>[1];

async function reported(
  twin: MemoryBlockStorage,
  snapshotId: string,
  told: { readonly status: "creating"; readonly progress: string },
): Promise<FakeAnswer> {
  const { status, progress } = told;
  if (!["0%", "90%"].includes(progress)) return refusal(400, "badRequest", "This twin knows 0% and 90% alone.");
  const outcome = await twin.reportSnapshot({ snapshotId, status, isDone: progress === "90%" });
  return outcome.kind === "taken" ? { status: 202 } : refusal(400, "badRequest", outcome.why);
}

async function shown(twin: MemoryBlockStorage, id: string, query: URLSearchParams, by: By): Promise<FakeAnswer> {
  if (id !== "detail") {
    const volume = await twin.volume(id, by);
    return volume === null ? noVolume(id) : { status: 200, body: { volume: volumeDocument(volume) } };
  }
  const [name, status] = [query.get("name"), query.get("status")];
  if (status !== null) return withStatus(twin, status, query);
  const named = async () => ({ kind: "listed", found: await twin.volumesNamed(name ?? "") }) as const;
  const list = await (name === null ? twin.volumes(pageOf(query), by) : named());
  if (list.kind === "forbidden") return refusal(403, "forbidden", list.why);
  return { status: 200, body: { volumes: list.found.map(volumeDocument) } };
}

async function withStatus(twin: MemoryBlockStorage, status: string, query: URLSearchParams): Promise<FakeAnswer> {
  const after = query.get("marker");
  if (after !== null && twin.all().every(({ id }) => id !== after)) return noVolume(after);
  const found = await twin.volumesWithStatus({ status, after, limit: Number(query.get("limit")) });
  return { status: 200, body: { volumes: found.map(volumeDocument) } };
}

async function migrated(twin: MemoryBlockStorage, volumeId: string, asked: Body): Promise<FakeAnswer> {
  const outcome = await twin.endMigration({ volumeId, targetId: asked.new_volume, hasFailed: asked.error });
  if (outcome.kind === "ended") return { status: 200, body: { save_volume_id: volumeId } };
  return refusal(outcome.why.startsWith("Invalid") ? 400 : 404, "badRequest", outcome.why);
}

async function filled(twin: MemoryBlockStorage, volumeId: string, asked: Body): Promise<FakeAnswer> {
  if (asked.reimage_reserved !== true) return refusal(400, "badRequest", "the volume is reserved");
  const outcome = await twin.reimage({ volumeId, imageId: asked.image_id });
  if (outcome.kind === "begun") return { status: 202 };
  return refusal(outcome.why.includes("more than one") ? 409 : 400, "badRequest", outcome.why);
}

async function created(twin: MemoryBlockStorage, asked: Body, by: By): Promise<FakeAnswer> {
  const { name, description = null, metadata = {}, size, imageRef, snapshot_id } = asked;
  const { volume_type = null, availability_zone = null } = asked;
  const source: VolumeSource = imageRef
    ? { kind: "image", id: imageRef }
    : snapshot_id
      ? { kind: "snapshot", id: snapshot_id }
      : { kind: "blank" };
  const wanted = {
    ...{ name, description, metadata, sizeGib: size, source },
    ...{ volumeType: volume_type, availabilityZone: availability_zone },
  };
  const outcome = await twin.createVolume(wanted, by);
  if (outcome.kind === "created") return { status: 202, body: { volume: volumeDocument(outcome.volume) } };
  return outcome.kind === "over-quota"
    ? refusal(413, "overLimit", outcome.why)
    : refusal(400, "badRequest", outcome.why);
}

async function snapshotted(twin: MemoryBlockStorage, asked: Body, by: By): Promise<FakeAnswer> {
  const { volume_id: volumeId, name, description, force, metadata } = asked;
  const outcome = await twin.createSnapshot({ volumeId, name, description, force, metadata }, by);
  if (outcome.kind === "created") return { status: 202, body: { snapshot: snapshotDocument(outcome.snapshot) } };
  if (outcome.kind === "unknown") return noVolume(volumeId);
  return outcome.kind === "over-quota"
    ? refusal(413, "overLimit", outcome.why)
    : refusal(400, "badRequest", outcome.why);
}

async function listed(twin: MemoryBlockStorage, query: URLSearchParams): Promise<FakeAnswer> {
  const marker = query.get("marker");
  if (marker !== null && !(await twin.attachments({})).some(({ id }) => id === marker)) return noAttachment(marker);
  const filter = {
    ...(query.has("instance_id") && { serverUuid: query.get("instance_id")! }),
    ...(query.has("volume_id") && { volumeId: query.get("volume_id")! }),
    ...{ after: marker, limit: Number(query.get("limit")) },
  };
  return { status: 200, body: { attachments: (await twin.attachments(filter)).map(attachmentDocument) } };
}

async function reserved(twin: MemoryBlockStorage, asked: Body, by: By): Promise<FakeAnswer> {
  const { volume_uuid: volumeId, instance_uuid: serverUuid, connector = null } = asked;
  const outcome = await twin.reserve({ volumeId, serverUuid, connector }, by);
  switch (outcome.kind) {
    case "reserved":
      return { status: 200, body: { attachment: attachmentDocument(outcome.attachment) } };
    case "unknown":
      return noVolume(volumeId);
    case "forbidden":
      return refusal(403, "forbidden", outcome.why);
    case "refused":
      if (outcome.why.startsWith("Unable")) return refusal(500, "computeFault", outcome.why);
      return refusal(400, "badRequest", outcome.why);
    default:
      return outcome satisfies never;
  }
}

/** Only services may end an attachment that a host has. */
async function ended(twin: MemoryBlockStorage, id: string, serviceToken: unknown): Promise<FakeAnswer> {
  if (serviceToken !== SERVICE_TOKEN) return refusal(409, "conflictingRequest", "Detach volume from instance instead");
  if (!(await twin.attachments({})).some((one) => one.id === id)) return noAttachment(id);
  await twin.deleteAttachment(id);
  return { status: 200, body: { attachments: [] } };
}

const refusal = (code: number, type: string, message: string): FakeAnswer => ({
  status: code,
  body: { [type]: { code, message } },
});
const noVolume = (id: string) => refusal(404, "itemNotFound", `Volume ${id} could not be found.`);
const noSnapshot = (id: string) => refusal(404, "itemNotFound", `Snapshot ${id} could not be found.`);
const noAttachment = (id: string) =>
  refusal(404, "itemNotFound", `Volume attachment could not be found with filter: attachment_id = ${id}.`);

const pageOf = (query: URLSearchParams): CinderPage => ({
  projectId: query.get("all_tenants") === "1" ? (query.get("project_id") ?? "") : "",
  offset: Number(query.get("offset")),
  limit: Number(query.get("limit")),
});

function snapshotDocument({ id, name, description, status, ...snapshot }: CinderSnapshot) {
  return {
    ...{
      id,
      name,
      description,
      status,
      volume_id: snapshot.volumeId,
      size: snapshot.sizeGib,
      metadata: snapshot.metadata,
    },
    ...{ created_at: snapshot.createdAt, "os-extended-snapshot-attributes:project_id": snapshot.projectId },
  };
}

function volumeDocument(volume: CinderVolume) {
  const { id, name, status, availabilityZone: availability_zone, isMultiattach: multiattach } = volume;
  return {
    ...{ id, name, status, availability_zone, multiattach, size: volume.sizeGib, bootable: `${volume.isBootable}` },
    ...{ "os-vol-tenant-attr:tenant_id": volume.projectId, metadata: volume.metadata, encrypted: false },
    ...{ description: volume.description, volume_type: volume.volumeType, snapshot_id: volume.snapshotId },
    ...{ created_at: volume.createdAt, migration_status: volume.migrationStatus || null },
    ...(Object.keys(volume.imageProperties).length > 0 && { volume_image_metadata: volume.imageProperties }),
    attachments: volume.attachedTo.map(({ attachmentId: attachment_id, serverUuid: server_id, host }) => ({
      ...{ id, attachment_id, volume_id: id, server_id, host_name: host || null, device: "" },
    })),
  };
}

const attachmentDocument = ({ id, volumeId, serverUuid, status, connection }: CinderAttachment) => ({
  ...{ id, volume_id: volumeId, instance: serverUuid, status, attach_mode: "null", attached_at: "", detached_at: "" },
  connection_info: connection ?? {},
});
