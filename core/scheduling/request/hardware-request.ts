import type { Asked } from "./asked.ts";
import { badExtraSpec, badImageProperty, type NamedValue, type RequestRefusal } from "./request-refusal.ts";

/** An option that both a flavor (`hw:cpu_policy`) and an image (`hw_cpu_policy`) may set. */
export interface HardwareRequest {
  readonly flavor: NamedValue | null;
  readonly image: NamedValue | null;
}

export type HardwareRequestRead<Value> = { readonly kind: "request"; readonly value: Value | null } | RequestRefusal;

/** Reads an option from both. `prefix` is `hw` or `os`. */
export function hardwareRequest({ flavor, imageProperties }: Asked, name: string, prefix = "hw"): HardwareRequest {
  return {
    flavor: namedValue(flavor.extraSpecs, `${prefix}:${name}`),
    image: namedValue(imageProperties, `${prefix}_${name}`),
  };
}

function namedValue(values: Readonly<Record<string, string>>, key: string): NamedValue | null {
  const value = Object.hasOwn(values, key) ? values[key] : undefined;
  return value === undefined || value === "" ? null : { key, value };
}

/** The value that the flavor or the image sets. It refuses a value that is not among `choices`, and two values that differ. */
export function agreedRequest<Choice extends string>(
  { flavor, image }: HardwareRequest,
  choices: readonly Choice[],
): HardwareRequestRead<Choice> {
  const allowed = orList(choices);
  const ofFlavor = flavor && choices.find((choice) => choice === flavor.value);
  const ofImage = image && choices.find((choice) => choice === image.value);
  if (flavor && !ofFlavor) return badExtraSpec(flavor.key, flavor.value, allowed);
  if (image && !ofImage) return badImageProperty(image.key, image.value, allowed);
  if (flavor && image && ofFlavor !== ofImage) return contradiction(flavor, image, "they must not differ");
  return { kind: "request", value: ofFlavor ?? ofImage ?? null };
}

/** Like `agreedRequest` for a boolean, in the spellings that OpenStack accepts. */
export function agreedFlag(request: HardwareRequest): HardwareRequestRead<boolean> {
  const { flavor, image } = request;
  const ofFlavor = flavor && readYes(flavor.value);
  const ofImage = image && readYes(image.value);
  if (flavor && ofFlavor === null) return badExtraSpec(flavor.key, flavor.value, "true or false");
  if (image && ofImage === null) return badImageProperty(image.key, image.value, "true or false");
  if (flavor && image && ofFlavor !== ofImage) return contradiction(flavor, image, "they must not differ");
  return { kind: "request", value: ofFlavor ?? ofImage ?? null };
}

export function contradiction(flavor: NamedValue, image: NamedValue, why: string): RequestRefusal {
  return { kind: "contradiction", flavor, image, why };
}

export function orList(choices: readonly string[]): string {
  return choices.length < 2 ? choices.join() : `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
}

function readYes(text: string): boolean | null {
  const word = text.trim().toLowerCase();
  if (["1", "t", "true", "on", "y", "yes"].includes(word)) return true;
  return ["0", "f", "false", "off", "n", "no"].includes(word) ? false : null;
}
