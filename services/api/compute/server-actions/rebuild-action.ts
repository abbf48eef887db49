import type { ServiceImage } from "../../../../core/stores/api/image-service.ts";
import type { KeypairStore } from "../../../../core/stores/api/keypair-store.ts";
import { bootsFromVolume } from "../../../../core/tasks/server-volumes.ts";
import type { UserChanges } from "../../../../core/tasks/user-changes.ts";
import { changedSpec } from "../../../../core/tasks/user-changes.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { type KnownCall, requireRule } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import { PRINTABLE, SERVER_METADATA_KEY } from "../../http/schema.ts";
import { refuseLargeSpec } from "../../http/spec-size.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import { refuseManyItems } from "../quotas/over-quota.ts";
import type { ProjectLimits } from "../quotas/project-limits.ts";
import { HOSTNAME_FROM_MINOR, readHostname } from "../servers/hostname.ts";
import { PERSONALITY_UNTIL_MINOR, readRebuildPersonality, refuseManyFiles } from "../servers/personality.ts";
import { type ImagePort, provideImages, readImage, refuseZeroDisk } from "../servers/read-image.ts";
import { readKey } from "../servers/read-key.ts";
import { DESCRIBING, readAddresses, readTrustedCertificates, readUserData } from "../servers/server-fields.ts";
import type { ActionBody } from "./action-body.ts";
import type { ActionTarget } from "./action-target.ts";
import type { CheckBody } from "./move-bodies.ts";
import { NO_SUCH_IMAGE } from "./read-reimage.ts";

const FIELDS = [
  ...["imageRef", "name", "metadata", "adminPass", "OS-DCF:diskConfig", "preserve_ephemeral"],
  ...["accessIPv4", "accessIPv6"],
];
/** The fields that came later, by their first microversion. */
const LATER_FIELDS: readonly (readonly [minor: number, field: string])[] = [
  [19, "description"],
  [54, "key_name"],
  [57, "user_data"],
  [63, "trusted_image_certificates"],
  [HOSTNAME_FROM_MINOR, "hostname"],
];
const TEXT_MAX = 255;
const USER_DATA_MAX = 65_535;

/** A rebuild that was read from a body. */
export interface RequestedRebuild {
  /** Returns the spec that the server is rebuilt with. */
  readonly after: (before: ServerSpec) => ServerSpec;
  /** Sees to it that hosts get the bits of the image. To be called once everything else is checked. */
  readonly prepare: () => Promise<void>;
  readonly imageRef: string;
  /** Null for an image that is unknown and may be used nevertheless. */
  readonly image: ServiceImage | null;
  /** The fields that the API tier keeps. They are changed at once, as in Nova. */
  readonly changes: UserChanges;
}

/** Refuses a body without an image, or with fields that the microversion does not have. */
export const checkRebuild: CheckBody = (body, { minor }) => {
  const later = LATER_FIELDS.filter(([since]) => minor >= since).map(([, field]) => field);
  const earlier = minor <= PERSONALITY_UNTIL_MINOR ? ["personality"] : [];
  body.refuseOthers(...FIELDS, ...later, ...earlier).require("imageRef");
  readImageRef(body);
};

/** Reads the changes of a rebuild. Refuses fields that the microversion does not have, and those that Berth does not support. */
export async function readRebuild(
  deps: {
    readonly images: ImagePort | null;
    readonly imageRule: ImageRule;
    readonly keypairs: Pick<KeypairStore, "keypair"> | null;
    readonly limits: Pick<ProjectLimits, "ofProject">;
  },
  { server }: ActionTarget,
  body: ActionBody,
  call: KnownCall,
): Promise<RequestedRebuild> {
  checkRebuild(body, call);
  const trustedCerts = readTrustedCertificates(body.raw("trusted_image_certificates"));
  if (trustedCerts !== undefined) requireRule(call, "servers:rebuild:trusted_certs");
  const { flavor } = server.spec;
  if (flavor === undefined) throw badRequest("The server has no flavor.");
  const imageRef = readImageRef(body);
  const isVolumeBacked = bootsFromVolume(server.spec);
  if (isVolumeBacked && (trustedCerts ?? []).length > 0)
    throw badRequest("Image certificate validation is not supported for volume-backed servers.");
  // The flavor's disk has no part in a server that boots from a volume.
  const fits = isVolumeBacked ? { ...flavor, diskGib: 0 } : flavor;
  const from = { caller: imageCallerOf(call), flavor: fits, rule: deps.imageRule, missing: NO_SUCH_IMAGE };
  const { properties, needed } = await readImage(imageRef, deps.images, from);
  if (!isVolumeBacked) refuseZeroDisk(call, flavor);
  const imageProperties = { ...properties };
  const userData = readRebuildUserData(body);
  const keyName = body.raw("key_name") === null ? null : body.text("key_name");
  const key = keyName === undefined ? {} : await readKey(keyName, deps.keypairs, server.spec.userId);
  // As in Nova, a rebuilt guest has the files that this call names and no others.
  const files = readRebuildPersonality(body.raw("personality"));
  const changes = readRebuildChanges(body, call);
  if (files.length > 0 || changes.metadata !== undefined) {
    const limits = await deps.limits.ofProject(call.identity.projectId);
    refuseManyFiles(files, limits);
    refuseManyItems(changes.metadata ?? {}, limits);
  }
  const after = (before: ServerSpec): ServerSpec => ({
    ...changedSpec(before, changes),
    ...{ imageProperties, files, diskImageRef: "" },
    // As in Nova, a server that boots from a volume has no image.
    ...(!isVolumeBacked && { imageRef }),
    ...(userData !== undefined && { userData }),
    ...(trustedCerts !== undefined && { trustedCerts }),
    ...key,
  });
  refuseLargeSpec(after(server.spec));
  const image = needed.find(({ id }) => id === imageRef) ?? null;
  // Cinder fetches the image of a volume itself.
  const provided = needed.filter((one) => !isVolumeBacked || one !== image);
  return {
    after,
    changes,
    imageRef,
    image,
    prepare: () => provideImages(deps.images, provided),
  };
}

/** Reads the image's id, in the spelling in which it is stored. */
function readImageRef(body: ActionBody): string {
  const asked = body.text("imageRef") ?? "";
  const id = canonicalUuid(asked);
  if (id === null) throw invalidField("imageRef", asked, `'${asked}' is not a 'uuid'`);
  return id;
}

function readRebuildChanges(body: ActionBody, call: KnownCall): UserChanges {
  const name = readMatching(body, "name", PRINTABLE);
  const hostname = readHostname(body.raw("hostname"), call.minor);
  const metadata = readMetadata(body.raw("metadata"));
  const description = body.raw("description") === null ? null : readMatching(body, "description", DESCRIBING);
  const [accessIPv4, accessIPv6] = [body.text("accessIPv4"), body.text("accessIPv6")];
  const diskConfig = body.raw("OS-DCF:diskConfig");
  if (diskConfig !== undefined && diskConfig !== "AUTO" && diskConfig !== "MANUAL")
    throw invalidField("OS-DCF:diskConfig", diskConfig, "It is not one of ['AUTO', 'MANUAL'].");
  return {
    ...(name !== undefined && { name }),
    ...(hostname !== undefined && { hostname }),
    ...(metadata !== undefined && { metadata }),
    ...(description !== undefined && { description }),
    ...(diskConfig !== undefined && { manualDisk: diskConfig === "MANUAL" }),
    ...readAddresses({
      ...(accessIPv4 !== undefined && { accessIPv4 }),
      ...(accessIPv6 !== undefined && { accessIPv6 }),
    }),
  };
}

/** Reads the user data, which null removes; undefined when the rebuild keeps it. */
function readRebuildUserData(body: ActionBody): string | undefined {
  const value = body.raw("user_data");
  if (value === undefined) return undefined;
  if (value !== null && (typeof value !== "string" || value.length > USER_DATA_MAX))
    throw badRequest(
      `Invalid input for field/attribute user_data. It is not text of at most ${USER_DATA_MAX} characters.`,
    );
  return readUserData(value);
}

/** Reads a text that must match the pattern by which a new server's is judged. */
function readMatching(body: ActionBody, field: string, pattern: string): string | undefined {
  const value = body.text(field);
  if (value !== undefined && !new RegExp(pattern, "u").test(value))
    throw invalidField(field, value, `It does not match ${pattern}`);
  return value;
}

function readMetadata(value: unknown): Record<string, string> | undefined {
  if (value === undefined) return undefined;
  const entries = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : null;
  const fits = (text: unknown) => typeof text === "string" && text.length <= TEXT_MAX;
  if (entries === null || !entries.flat().every(fits))
    throw invalidField("metadata", value, "It is an object of strings.");
  const wrong = entries.find(([key]) => !new RegExp(SERVER_METADATA_KEY, "u").test(key));
  if (wrong !== undefined) throw invalidField("metadata", wrong[0], `A key does not match ${SERVER_METADATA_KEY}`);
  return Object.fromEntries(entries) as Record<string, string>;
}
