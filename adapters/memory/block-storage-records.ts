import type {
  CinderAttachment,
  CinderAttachmentFilter,
  CinderList,
  CinderPage,
  CinderSnapshot,
  NewCinderVolume,
  VolumeConnector,
} from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";

/** A volume of which nothing else is known. */
export const EMPTY_VOLUME = {
  ...{ name: "", sizeGib: 1, status: "available", isBootable: false, isMultiattach: false, availabilityZone: "nova" },
  ...{ description: null, volumeType: null, snapshotId: null, metadata: {}, imageProperties: {}, migrationStatus: "" },
  createdAt: "2026-11-26T12:00:00.000000",
};
/** Cinder deletes no volume whose migration has another status. Source: `AVAILABLE_MIGRATION_STATUS` of its volume API. */
export const DELETABLE_MIGRATIONS: readonly string[] = ["", "deleting", "error", "success"];

/** A new volume that has yet to be made. */
export function volumeAsWanted(wanted: NewCinderVolume, snapshot: CinderSnapshot | null) {
  const { name, description = null, metadata = {}, sizeGib, source, volumeType } = wanted;
  return {
    ...{ name, description, metadata, volumeType, sizeGib: sizeGib ?? snapshot?.sizeGib ?? 1 },
    ...{ snapshotId: snapshot?.id ?? null, isBootable: source.kind !== "blank" },
  };
}

/** A page of the resources of a project, the newest first. */
export function storagePage<One extends { readonly projectId: string }>(
  all: Iterable<One>,
  { projectId, offset, limit }: CinderPage,
  callerToken: string | null,
): readonly One[] {
  const owned = [...all].filter((one) => one.projectId === (callerToken ?? projectId));
  return owned.toReversed().slice(offset, offset + limit);
}

/** A list for a caller, to whom the policy forbids it unless the token is null. */
export function listedTo<One>(forbiddenTo: string | null, find: () => readonly One[]): CinderList<One> {
  if (forbiddenTo === null) return { kind: "listed", found: find() };
  return { kind: "forbidden", why: "Policy doesn't allow this to be performed." };
}

/** The resources behind `after` that match, `limit` at most. Refused, with the words of `gone`, if there is none of this id. */
export function pageAfter<One extends { readonly id: string }>(
  all: readonly One[],
  matches: (one: One) => boolean,
  { after = null, limit = all.length }: Pick<CinderAttachmentFilter, "after" | "limit">,
  gone: (id: string) => string,
): readonly One[] {
  const last = all.findIndex(({ id }) => id === after);
  if (after !== null && last < 0) throw new BlockStorageError("bad-answer", gone(after));
  return all
    .slice(last + 1)
    .filter(matches)
    .slice(0, limit);
}

/** Whether an attachment has the values of the filter. */
export const isOf =
  ({ serverUuid, volumeId }: CinderAttachmentFilter) =>
  (one: CinderAttachment): boolean =>
    (serverUuid ?? one.serverUuid) === one.serverUuid && (volumeId ?? one.volumeId) === one.volumeId;

/** What Cinder says of a page that follows a volume which is gone. */
export const noVolume = (id: string) => `Volume ${id} could not be found.`;

/** What Cinder says of a page that follows an attachment which has ended. */
export const noMarker = (id: string) => `Volume attachment could not be found with filter: attachment_id = ${id}.`;

/** An attachment whose volume Cinder's driver has exported to a host. `format`: the one for which the driver takes the volume's content. */
export function connectedTo<Attachment extends CinderAttachment>(
  attachment: Attachment,
  { host }: VolumeConnector,
  { name, format }: { readonly name: string; readonly format: string },
): Attachment & { readonly host: string } {
  const connection = { driver_volume_type: "nfs", export: "storage:/volumes", name, format };
  return { ...attachment, status: "attaching", host, connection: { ...connection, attachment_id: attachment.id } };
}

/** An attachment as Cinder shows it. */
export const withoutHost = ({
  host: _host,
  ...shown
}: CinderAttachment & { readonly host: string }): CinderAttachment => shown;
