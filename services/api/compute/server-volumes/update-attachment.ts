import { requireRule } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, notFound } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";
import { findServer } from "../servers/require-state.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import type { UpdateAttachmentBody } from "./attachment-schemas.ts";
import type { AttachmentCall } from "./begin-attachment.ts";
import { attachmentOfServer } from "./find-attachment.ts";
import { unexpected } from "./newer-fields.ts";
import { swapVolume } from "./swap-volume.ts";

/** Before this microversion, a volume can only be replaced by another one. */
const UPDATE_FROM_MINOR = 85;
const ONLY_WITH_UPDATES = ["device", "tag", "delete_on_termination", "serverId", "id"] as const;
/** The policy of replacing a volume. */
const SWAP = "os-volumes-attachments:swap";

/**
 * Sets whether a volume is deleted with its server, from microversion 2.85 on, and replaces it by another one (`swapVolume`).
 *
 * Source: Nova's `VolumeAttachmentController.update`.
 */
export async function updateAttachment(
  deps: ServerDeps,
  context: AttachmentCall,
  { id, volumeId }: { readonly id: string; readonly volumeId: string },
  { volumeAttachment: asked }: UpdateAttachmentBody,
): Promise<void> {
  const { call } = context;
  const onlySwaps = call.minor < UPDATE_FROM_MINOR;
  const newer = ONLY_WITH_UPDATES.find((field) => asked[field] !== undefined);
  if (onlySwaps && newer !== undefined) throw unexpected(newer);
  const { record } = await findServer(deps, call, id);
  const swaps = onlySwaps || storedSpelling(asked.volumeId) !== storedSpelling(volumeId);
  requireRule(call, swaps ? SWAP : "os-volumes-attachments:update", record.spec);
  if (!onlySwaps) await update(deps, record.serverUuid, volumeId, asked);
  if (swaps) await swapVolume(deps, context, { id, volumeId }, asked.volumeId);
}

async function update(
  { volumes }: ServerDeps,
  serverUuid: string,
  volumeId: string,
  asked: UpdateAttachmentBody["volumeAttachment"],
): Promise<void> {
  const missing = () => notFound(`No volume Block Device Mapping with id ${volumeId.slice(0, 100)}.`);
  const volume = await attachmentOfServer(volumes, serverUuid, volumeId);
  if (volumes === null || volume === null) throw missing();
  const { attachment } = volume;
  const fixed: readonly (readonly [field: string, asked: string | null | undefined, is: string | null])[] = [
    ["id", asked.id && storedSpelling(asked.id), volume.id],
    ["serverId", asked.serverId && storedSpelling(asked.serverId), serverUuid],
    ["device", asked.device, attachment.device],
    ["tag", asked.tag, attachment.tag],
  ];
  for (const [field, value, is] of fixed)
    if (value !== undefined && value !== is) throw badRequest(`The ${field} property is not mutable`);
  const flag = asked.delete_on_termination;
  if (flag === undefined) return;
  if (!(await volumes.setDeleteOnTermination(volume.id, serverUuid, readFlag(flag) ?? false))) throw missing();
}
