import type { ImageCaller, ServiceImage } from "../../../../core/stores/api/image-service.ts";
import { OPERATIONS } from "../../../../core/tasks/operation-kinds.ts";
import type { RescueImage } from "../../../../proto/gen/berth/shared.ts";
import { callerOf, type KnownCall } from "../../http/call.ts";
import { canonicalUuid, storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import { refuseVolumeBacked } from "../server-volumes/refuse-volume-backed.ts";
import { adminPassword } from "../servers/admin-password.ts";
import {
  diskBytesOf,
  diskTooSmall,
  type ImagePort,
  imagePropertiesOf,
  type JudgedImage,
  judgeImage,
  provideImages,
} from "../servers/read-image.ts";
import type { ActionBody } from "./action-body.ts";
import { type ActionTarget, findTarget, wrongState } from "./action-target.ts";
import { beginInCell } from "./begin-in-cell.ts";

/** An image that no service describes. */
const UNKNOWN: JudgedImage = { image: null, needed: [] };

interface RescueCall {
  readonly id: string;
  readonly call: KnownCall;
  readonly carrier: Readonly<Record<string, string>>;
  readonly body: ActionBody;
  readonly action: string;
}

/**
 * Begins to rescue a server: its guest is booted from the image that the call names, or else from the one that the server's image was made of. The
 * answer has a password, as Nova's, which no guest is told.
 *
 * Source: `rescue` of Nova's compute API, and `_get_rescue_image` of its compute manager.
 */
export async function rescue(
  deps: Parameters<typeof findTarget>[0] & Parameters<typeof beginInCell>[0] & { readonly images: ImagePort | null },
  one: RescueCall,
  { imageRule, instancePasswords }: { readonly imageRule: ImageRule; readonly instancePasswords: boolean },
): Promise<{ readonly status: 200; readonly body: object }> {
  const { body, call, carrier, action } = one;
  body.refuseOthers("adminPass", "rescue_image_ref");
  const givenPassword = body.password();
  const imageRef = body.text("rescue_image_ref");
  if (imageRef !== undefined && canonicalUuid(imageRef) === null)
    throw invalidField("rescue_image_ref", imageRef, `'${imageRef}' is not a 'uuid'`);
  const target = await findTarget(deps, call, one);
  refuseVolumeBacked(target);
  const { server } = target;
  if (!OPERATIONS.rescue.allowedFrom.includes(server.status))
    throw wrongState({ action, uuid: server.uuid }, server.status);
  const images = { port: deps.images, caller: imageCallerOf(call), rule: imageRule };
  const { rescueImage, needed } =
    imageRef === undefined ? await imageOfServer(target, images) : await namedImage(imageRef, target, images);
  const prepare = () => provideImages(deps.images, needed);
  await beginInCell(deps, target, { kind: "rescue", carrier, askedBy: callerOf(call), rescueImage, prepare });
  return { status: 200, body: instancePasswords ? { adminPass: adminPassword(givenPassword) } : {} };
}

/** The image that a server is rescued with, and those of which its host needs the bits. */
interface FoundImage {
  readonly rescueImage: RescueImage;
  readonly needed: readonly ServiceImage[];
}

interface Images {
  /** Null when this process has no images. */
  readonly port: ImagePort | null;
  readonly caller: ImageCaller;
  readonly rule: ImageRule;
}

async function namedImage(imageRef: string, target: ActionTarget, images: Images): Promise<FoundImage> {
  const { port, ...from } = images;
  // Hosts have images under this spelling of their ids.
  const id = storedSpelling(imageRef);
  const judged: JudgedImage = port === null ? UNKNOWN : await judgeImage(id, port, from);
  if ("refused" in judged) throw badRequest(`Requested rescue image '${imageRef}' is not supported`);
  const { image, needed } = judged;
  if (image !== null) await refuseLargerDisk(image, target, images);
  return { rescueImage: { imageRef: id, imageProperties: image === null ? {} : imagePropertiesOf(image) }, needed };
}

/** The image of which the server's own image was made, as long as the caller may use it, or else the server's own image. */
async function imageOfServer(target: ActionTarget, images: Images): Promise<FoundImage> {
  const { port, ...from } = images;
  const { uuid, spec } = target.server;
  const { imageRef, imageProperties } = spec;
  const baseRef = storedSpelling(imageProperties.base_image_ref ?? "");
  const judged: JudgedImage = port === null || baseRef === "" ? UNKNOWN : await judgeImage(baseRef, port, from);
  if ("image" in judged && judged.image !== null) {
    await refuseLargerDisk(judged.image, target, images);
    const rescueImage = { imageRef: baseRef, imageProperties: imagePropertiesOf(judged.image) };
    return { rescueImage, needed: judged.needed };
  }
  if (imageRef === "")
    throw badRequest(
      `Instance ${uuid} cannot be rescued: it has no image, so the call must name one (rescue_image_ref).`,
    );
  return { rescueImage: { imageRef, imageProperties }, needed: [] };
}

const GIB = 2 ** 30;

/**
 * Refuses (400) an image whose disk is larger than the server's own, which the server's host would refuse, too: the guest could fill a disk of which
 * nobody has counted so much. A flavor without a disk gives a server one of its image's size. Sizes that are not known here are left to the host.
 */
async function refuseLargerDisk(image: ServiceImage, { server: { spec } }: ActionTarget, { port, caller }: Images) {
  const needed = diskBytesOf(image);
  if (needed === null || image.id === storedSpelling(spec.imageRef)) return;
  const flavorBytes = (spec.flavor?.diskGib ?? 0) * GIB;
  const own = flavorBytes > 0 || spec.imageRef === "" ? null : await port?.find(storedSpelling(spec.imageRef), caller);
  const ownBytes = own == null || own === "deleted" ? null : diskBytesOf(own);
  const disk = flavorBytes > 0 ? flavorBytes : ownBytes;
  if (disk !== null && needed > disk)
    throw diskTooSmall({ disk, image: needed }, flavorBytes > 0 ? "Flavor" : "Server");
}
