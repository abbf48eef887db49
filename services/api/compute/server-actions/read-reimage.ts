import type { ServiceImage } from "../../../../core/stores/api/image-service.ts";
import { bootsFromVolume } from "../../../../core/tasks/server-volumes.ts";
import type { ServerVolume } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict, type Fault } from "../../http/fault.ts";
import { refuseInDoubt } from "../server-volumes/refuse-in-doubt.ts";
import type { FoundRecord, ServerVolumes } from "../server-volumes/server-volumes.ts";
import { diskBytesOf, type ImagePort } from "../servers/read-image.ts";
import type { ActionTarget } from "./action-target.ts";

/** From this microversion on, a rebuild fills the boot volume of a server with the image. */
export const REIMAGE_FROM_MINOR = 93;
const GIB = 2 ** 30;

/**
 * The boot volume that a rebuild fills with the image, whose id it has as its `imageRef`. Null for a server with a local boot disk, and before microversion 2.93, where the volume
 * keeps its content. Refuses what cannot be done to such a server (400): before 2.93 another image than the volume was filled from, and later an image that does not fit into the
 * volume, an image that Cinder cannot read, a volume that another server has, too, and one of Berth's own, which are made from no images. A volume that Cinder is filling already is refused (409).
 *
 * Cinder is asked in Berth's name, so it would also use images that the caller may not see. Hence the caller must have found the image. Cinder 21 leaves a volume `downloading` forever if
 * it refuses the image only when it is asked, so the image's size is looked at here, and whether Berth's user may see it.
 *
 * Source: `rebuild` of Nova's compute API.
 */
export async function readReimage(
  { volumes, images }: { readonly volumes: Pick<ServerVolumes, "find"> | null; readonly images: ImagePort | null },
  target: ActionTarget,
  call: KnownCall,
  { imageRef, image }: { readonly imageRef: string; readonly image: ServiceImage | null },
): Promise<ServerVolume | null> {
  const { spec, uuid } = target.server;
  if (!bootsFromVolume(spec)) return null;
  refuseInDoubt(target);
  const root = spec.volumes.find(({ isRoot }) => isRoot);
  const found = root?.inCinder ? (await volumes?.find([root.volumeId], call))?.[0] : undefined;
  if (root?.inCinder && found === undefined) throw badRequest(`Volume ${root.volumeId} could not be found.`);
  if (call.minor < REIMAGE_FROM_MINOR) {
    if (found?.imageProperties.image_id === imageRef) return null;
    throw unacceptable(imageRef, "Unable to rebuild with a different image for a volume-backed server.");
  }
  if (root === undefined || found === undefined)
    throw unacceptable(
      imageRef,
      "Unable to rebuild a volume-backed server whose volume is one of Berth's own, which are not filled with images.",
    );
  refuseShared(found, uuid);
  refuseBusy(found, target);
  await refuseUnread(images, imageRef, image);
  if (image !== null) refuseBig(image, found);
  return { ...root, imageRef };
}

/** How Nova says that there is no image of which a server is to be rebuilt. */
export const NO_SUCH_IMAGE = "Cannot find image for rebuild";

async function refuseUnread(images: ImagePort | null, imageRef: string, image: ServiceImage | null): Promise<void> {
  if (images?.isReadByOthers === undefined)
    throw unacceptable(
      imageRef,
      "Cinder fills volumes with images of Glance alone, and Berth's images are not there (BERTH_IMAGES=glance).",
    );
  if (image === null) throw badRequest(`${NO_SUCH_IMAGE}. Image ${imageRef.slice(0, 100)} could not be found.`);
  if (!(await images.isReadByOthers(image.id)))
    throw unacceptable(
      imageRef,
      "Cinder reads images in the name of Berth's user, who may not see this one: share the image with the user's project, or give the user the role admin.",
    );
}

/** Cinder fills no volume a second time before it has ended, nor one whose status says that it is broken or busy. */
function refuseBusy({ id, cinderStatus }: FoundRecord, { action, server }: ActionTarget): void {
  const cannot = `Cannot '${action}' instance ${server.uuid} while its boot volume ${id} is ${cinderStatus} in Cinder.`;
  if (cinderStatus === "downloading") throw conflict(`${cannot} Wait until Cinder has filled it, and try again.`);
  if (cinderStatus === "error")
    throw conflict(
      `${cannot} Look into Cinder's messages (openstack volume message list). When the volume is usable again, an administrator sets its status (openstack volume set --state reserved ${id}).`,
    );
}

/** Source: `reimage` of Cinder's volume API. */
function refuseShared({ id, attachedTo }: FoundRecord, serverUuid: string): void {
  if (attachedTo.some((one) => one.serverUuid !== serverUuid))
    throw badRequest(
      `Invalid volume: volume ${id} is attached to another server, too, and cannot be filled with an image.`,
    );
}

/** Cinder itself compares only the size of the file when it is asked, and breaks the volume when it unpacks a larger disk. */
function refuseBig(image: ServiceImage, { id: volumeId, sizeGib }: FoundRecord): void {
  const { id, minDiskGib } = image;
  if (minDiskGib > sizeGib)
    throw badRequest(
      `Volume is smaller than the minimum size specified in image metadata. Volume size is ${sizeGib * GIB} bytes, minimum size is ${minDiskGib * GIB} bytes.`,
    );
  const bytes = Math.max(image.bytes ?? 0, diskBytesOf(image) ?? 0);
  if (bytes > sizeGib * GIB)
    throw unacceptable(id, `It has ${bytes} bytes, and volume ${volumeId} has ${sizeGib * GIB}.`);
}

const unacceptable = (imageRef: string, why: string): Fault =>
  badRequest(`Image ${imageRef.slice(0, 100)} is unacceptable: ${why}`);
