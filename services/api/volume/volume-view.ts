import type { AttachmentPhase, VolumeRecord } from "../../../core/stores/api/volume-store.ts";
import type { ResourceLink } from "../http/links.ts";
import { isoMicroseconds } from "../http/times.ts";
import { VOLUME_TYPE } from "./volume-type.ts";

const STATUSES: Readonly<Record<AttachmentPhase, string>> = {
  attaching: "attaching",
  attached: "in-use",
  detaching: "detaching",
};

/** Returns the status of a volume as Cinder names it. */
export function statusOf({ attachment }: Pick<VolumeRecord, "attachment">): string {
  return attachment === null ? "available" : STATUSES[attachment.phase];
}

/** Returns the filter of a list of volumes that corresponds to a status, or null for a status that no volume has. */
export function phaseOf(status: string): AttachmentPhase | "available" | null {
  if (status === "available") return status;
  return (Object.keys(STATUSES) as AttachmentPhase[]).find((phase) => STATUSES[phase] === status) ?? null;
}

/** Returns a volume as the list without details shows it. */
export function briefVolumeView({ id, name }: VolumeRecord, links: readonly ResourceLink[]) {
  return { id, name, links };
}

/**
 * Returns a volume in full, as microversion 3.0 shows it.
 *
 * Source: Cinder's api-ref v3, "Volumes".
 */
export function volumeView(volume: VolumeRecord, links: readonly ResourceLink[]) {
  return {
    ...briefVolumeView(volume, links),
    description: volume.description,
    status: statusOf(volume),
    size: volume.sizeGib,
    availability_zone: volume.availabilityZone,
    // Cinder writes times without the zone.
    created_at: isoMicroseconds(volume.createdAtMs),
    updated_at: volume.updatedAtMs === null ? null : isoMicroseconds(volume.updatedAtMs),
    user_id: volume.userId,
    "os-vol-tenant-attr:tenant_id": volume.projectId,
    metadata: volume.metadata,
    bootable: String(volume.isBootable),
    volume_type: VOLUME_TYPE.name,
    attachments: attachmentViews(volume),
    ...{ encrypted: false, multiattach: false, snapshot_id: null, source_volid: null, consistencygroup_id: null },
    ...{ replication_status: null, migration_status: null },
  };
}

/** Returns a volume as the answers to its creation and its changes show it: without its project, as in Cinder. */
export function changedVolumeView(volume: VolumeRecord, links: readonly ResourceLink[]) {
  const { "os-vol-tenant-attr:tenant_id": _, ...view } = volumeView(volume, links);
  return view;
}

/** Only a server that was told that it has the volume is shown. */
function attachmentViews({ id, attachment }: VolumeRecord) {
  if (attachment === null || attachment.attachedAtMs === null) return [];
  const { attachmentId, serverUuid, device, attachedAtMs } = attachment;
  return [
    {
      ...{ id, volume_id: id, attachment_id: attachmentId, server_id: serverUuid, device, host_name: null },
      attached_at: isoMicroseconds(attachedAtMs),
    },
  ];
}
