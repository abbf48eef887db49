import type {
  AttachmentPhase,
  VolumeAttachment,
  VolumeMaking,
  VolumeRecord,
} from "../../../core/stores/api/volume-store.ts";

type AttachmentColumns = {
  readonly phase: AttachmentPhase;
  readonly phase_age_ms: number;
  readonly attached_at_ms: number | null;
  readonly server_uuid: string;
  readonly cell: string;
  readonly attachment_id: string;
  readonly mapping_uuid: string;
  readonly device: string;
  readonly tag: string | null;
  readonly delete_on_termination: boolean;
  readonly task_id: string | null;
};

/** A row of `volumes`. The columns of the attachment are all null while no server has the volume. */
export type VolumeRow = {
  readonly id: string;
  /** The volume of a row whose id is another one. */
  readonly volume_id: string | null;
  readonly project_id: string;
  readonly user_id: string;
  readonly name: string;
  readonly description: string | null;
  readonly size_gib: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly availability_zone: string;
  readonly is_bootable: boolean;
  readonly in_cinder: boolean;
  readonly making: VolumeMaking | null;
  readonly created_at_ms: number;
  readonly updated_at_ms: number | null;
  readonly revision: number;
} & (AttachmentColumns | { readonly phase: null });

export const VOLUME_COLUMNS = `id, volume_id, project_id, user_id, name, description, size_gib, metadata, availability_zone, is_bootable, in_cinder, making,
  created_at_ms::float8, updated_at_ms::float8, revision, phase, attached_at_ms::float8, server_uuid, cell, attachment_id, mapping_uuid, device, tag,
  delete_on_termination, task_id, (extract(epoch from clock_timestamp() - phase_at) * 1000)::float8 as phase_age_ms`;

export function recordOfVolume(row: VolumeRow): VolumeRecord {
  return {
    id: row.volume_id ?? row.id,
    projectId: row.project_id,
    userId: row.user_id,
    name: row.name,
    description: row.description,
    sizeGib: row.size_gib,
    metadata: row.metadata,
    availabilityZone: row.availability_zone,
    isBootable: row.is_bootable,
    inCinder: row.in_cinder,
    making: row.making,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    attachment: row.phase === null ? null : attachmentOf(row),
  };
}

function attachmentOf(row: AttachmentColumns): VolumeAttachment {
  return {
    phase: row.phase,
    serverUuid: row.server_uuid,
    cell: row.cell,
    attachmentId: row.attachment_id,
    mappingUuid: row.mapping_uuid,
    device: row.device,
    tag: row.tag,
    deleteOnTermination: row.delete_on_termination,
    taskId: row.task_id,
    attachedAtMs: row.attached_at_ms,
    phaseAgeMs: Math.max(0, row.phase_age_ms),
  };
}
