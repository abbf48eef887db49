import { SPEC_BYTES_MAX } from "../../../core/tasks/spec-limits.ts";
import { SchedulerHint, ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { encodeMessage } from "../../../runtime/encode-message.ts";
import { encodeOnce } from "../../../runtime/encode-once.ts";
import type { Fault } from "./fault.ts";
import { badRequest } from "./fault.ts";

/**
 * Maximum number of bytes of one server's encoded scheduler hints. A value that is not text is encoded as JSON, which may be longer than the
 * value that was sent.
 */
const HINTS_BYTES_MAX = 16_384;
/** Maximum number of bytes in the names and values of one image's properties. */
export const IMAGE_PROPERTIES_BYTES_MAX = 65_536;

/**
 * Refuses a server whose spec would be too large for a message, or for many specs to be handled together. Schemas limit each field; fields
 * that only exceed a limit in sum are named here with their size, the limit and a remedy.
 */
export function refuseLargeSpec(spec: ServerSpec): void {
  const refusal = explainLargeSpec(spec);
  if (refusal !== null) throw refusal;
}

/** Returns the refusal of a spec that is too large, or null. */
export function explainLargeSpec(spec: ServerSpec): Fault | null {
  const hintsBytes = sum(spec.hints.map((hint) => encodeMessage(SchedulerHint, hint).length));
  if (hintsBytes > HINTS_BYTES_MAX)
    return tooLarge("os:scheduler_hints", `${spec.hints.length} hints`, {
      is: hintsBytes,
      max: HINTS_BYTES_MAX,
      instead: "Leave some hints out, or shorten them",
    });
  const imageBytes = propertyBytes(spec.imageProperties);
  if (imageBytes > IMAGE_PROPERTIES_BYTES_MAX)
    return tooLarge("imageRef", spec.imageRef, {
      is: imageBytes,
      max: IMAGE_PROPERTIES_BYTES_MAX,
      instead: "Remove properties of the image that no server needs",
    });
  const bytes = encodeOnce(ServerSpec, spec).length;
  if (bytes <= SPEC_BYTES_MAX) return null;
  return tooLarge("server", "an object", {
    is: bytes,
    max: SPEC_BYTES_MAX,
    instead: `${largestPart(spec)} most of it: make that smaller`,
  });
}

/** Refuses an image with more properties than a server can carry. */
export function refuseLargeImage(properties: Readonly<Record<string, string>>): void {
  const is = propertyBytes(properties);
  if (is <= IMAGE_PROPERTIES_BYTES_MAX) return;
  const instead = "Leave some properties out, or shorten them";
  const count = `${Object.keys(properties).length} properties`;
  throw tooLarge("properties", count, { is, max: IMAGE_PROPERTIES_BYTES_MAX, instead });
}

function tooLarge(
  field: string,
  value: string,
  { is, max, instead }: { readonly is: number; readonly max: number; readonly instead: string },
): Fault {
  return badRequest(
    `Invalid input for field/attribute ${field}. Value: ${value}. It takes ${is} bytes when it is stored; at most ${max} are allowed. ${instead}.`,
  );
}

function largestPart(spec: ServerSpec): string {
  const parts = new Map([
    ["The metadata takes", propertyBytes(spec.metadata)],
    ["The extra specs of the flavor take", propertyBytes(spec.flavor?.extraSpecs ?? {})],
    ["The properties of the image take", propertyBytes(spec.imageProperties)],
    ["The user data takes", spec.userData.length],
    ["The files take", sum(spec.files.map(({ path, contents }) => Buffer.byteLength(path) + contents.length))],
    ["The ports take", JSON.stringify([spec.ports, spec.portRequests]).length],
  ]);
  return [...parts].reduce((largest, part) => (part[1] > largest[1] ? part : largest))[0];
}

function propertyBytes(properties: Readonly<Record<string, string>>): number {
  return sum(Object.entries(properties).map(([name, value]) => Buffer.byteLength(name) + Buffer.byteLength(value)));
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((all, size) => all + size, 0);
}
