import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import { refuseLargeSpec } from "../../http/spec-size.ts";
import type { ImageCatalog } from "../../image/image-catalog.ts";
import { HOSTNAME_FROM_MINOR, readHostname } from "../servers/hostname.ts";
import type { ImageRule } from "../servers/image-rule.ts";
import { readImageProperties } from "../servers/read-image.ts";
import type { ActionBody } from "./action-body.ts";
import type { ActionTarget } from "./action-target.ts";

const FIELDS = ["imageRef", "name", "metadata", "adminPass", "OS-DCF:diskConfig", "preserve_ephemeral"];
const METADATA_MAX = 128;
const TEXT_MAX = 255;

/** Reads what a rebuild changes: image, name, host name or metadata. Refuses fields that Berth does not store. */
export async function readRebuild(
  deps: { readonly images: ImageCatalog | null; readonly imageRule: ImageRule },
  { server }: ActionTarget,
  body: ActionBody,
  call: KnownCall,
): Promise<(before: ServerSpec) => ServerSpec> {
  body.refuseOthers(...FIELDS, ...(call.minor >= HOSTNAME_FROM_MINOR ? ["hostname"] : [])).require("imageRef");
  const hostname = readHostname(body.raw("hostname"), call.minor);
  const { flavor } = server.spec;
  if (flavor === undefined) throw badRequest("The server has no flavor.");
  const imageRef = body.text("imageRef") ?? "";
  const image = { identity: call.identity, flavor, rule: deps.imageRule };
  const imageProperties = { ...(await readImageProperties(imageRef, deps.images, image)) };
  const name = body.text("name");
  if (name?.trim() === "") throw invalidField("name", name, "It is empty.");
  const metadata = readMetadata(body.raw("metadata"));
  const rebuilt = (before: ServerSpec): ServerSpec => ({
    ...before,
    ...{ imageRef, imageProperties },
    ...(name !== undefined && { name }),
    ...(hostname !== undefined && { hostname }),
    ...(metadata !== undefined && { metadata }),
  });
  refuseLargeSpec(rebuilt(server.spec));
  return rebuilt;
}

function readMetadata(value: unknown): Record<string, string> | undefined {
  if (value === undefined) return undefined;
  const entries = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : null;
  const fits = (text: unknown) => typeof text === "string" && text.length <= TEXT_MAX;
  if (entries === null || entries.length > METADATA_MAX || !entries.flat().every(fits))
    throw invalidField("metadata", value, "It is an object of strings.");
  return Object.fromEntries(entries) as Record<string, string>;
}
