import {
  type AggregateUuid,
  aggregateUuid,
  type ProviderUuid,
  providerUuid,
  type ResourceClass,
  resourceClass,
  type Trait,
  trait,
} from "../../../core/ledger/ids.ts";
import type { PlacementCall } from "./http.ts";
import { placementBadRequest } from "./placement-error.ts";
import { readUuidLike } from "./uuids.ts";

/** Rules of a `required` parameter: the outer list means AND, an inner list means OR. */
export interface TraitRules {
  readonly required: readonly (readonly Trait[])[];
  readonly forbidden: readonly Trait[];
}
/** Rules of a `member_of` parameter: the outer list means AND, an inner list means OR. */
export interface AggregateRules {
  readonly memberOf: readonly (readonly AggregateUuid[])[];
  readonly forbidden: readonly AggregateUuid[];
}

type Query = Pick<PlacementCall, "query" | "version">;

/** `VCPU:2,MEMORY_MB:1024` → amounts by class. Throws 400. */
export function parseResources(value: string): ReadonlyMap<ResourceClass, number> {
  const form =
    "Badly formed resources parameter. Expected resources query string parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got:";
  if (value.trim() === "") throw placementBadRequest(`${form} empty string.`);
  const amounts = new Map<ResourceClass, number>();
  for (const entry of value.split(",")) {
    const parts = entry.split(":");
    if (parts.length !== 2) throw placementBadRequest(`${form} ${entry}.`);
    const [name, text] = parts as [string, string];
    if (!/^\s*[+-]?\d+\s*$/.test(text))
      throw placementBadRequest(`Requested resource ${name} expected positive integer amount. Got: ${text}.`);
    const amount = Number(text);
    if (amount < 1) throw placementBadRequest(`Requested resource ${name} requires amount >= 1. Got: ${amount}.`);
    if (!Number.isSafeInteger(amount))
      throw placementBadRequest(`Requested resource ${name} requires amount < 2^53. Got: ${text.trim()}.`);
    amounts.set(resourceClass(name), amount);
  }
  return amounts;
}

const invalid = "Invalid query string parameters:";

/** One value of `required`: `A,B`, `A,!B` (1.22) or `in:A,B` (1.39). Throws 400. */
function parseTraits(value: string, allow: { readonly forbidden: boolean; readonly anyOf: boolean }): TraitRules {
  if (value.startsWith("in:")) {
    if (!allow.anyOf)
      throw placementBadRequest(
        `${invalid} The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39. Got: ${value}`,
      );
    const any = value
      .slice(3)
      .split(",")
      .map((name) => name.trim());
    if (any.includes("")) {
      throw placementBadRequest(
        `${invalid} Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: ${value}`,
      );
    }
    if (any.some((name) => name.startsWith("!"))) {
      throw placementBadRequest(
        `${invalid} The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' does not support forbidden traits. Got: ${value}`,
      );
    }
    return { required: [[...new Set(any)].map(trait)], forbidden: [] };
  }
  const names = value.split(",").map((name) => name.trim());
  const form = allow.forbidden ? "HW_CPU_X86_VMX,!CUSTOM_MAGIC" : "HW_CPU_X86_VMX,CUSTOM_MAGIC";
  // Any number of leading exclamation marks means one, as upstream's parser has it.
  const forbidden = names.filter((name) => name.startsWith("!")).map((name) => name.replace(/^!+/, ""));
  if ([...names, ...forbidden].includes("")) {
    throw placementBadRequest(
      `${invalid} Expected 'required' parameter value of the form: ${form}. Got an empty trait in: ${value}`,
    );
  }
  if (forbidden.length > 0 && !allow.forbidden) {
    throw placementBadRequest(`${invalid} Expected 'required' parameter value of the form: ${form}. Got: ${value}`);
  }
  const required = [...new Set(names.filter((name) => !name.startsWith("!")))].map((name) => [trait(name)]);
  return { required, forbidden: [...new Set(forbidden)].map(trait) };
}

/** All values of `required<suffix>`; before 1.39 only the last counts. Throws 400. */
export function traitRules(call: Query, suffix = ""): TraitRules {
  const values = call.query.getAll(`required${suffix}`);
  const allow = { forbidden: call.version.has(22), anyOf: call.version.has(39) };
  const rules = (allow.anyOf ? values : values.slice(-1)).map((value) => parseTraits(value, allow));
  return { required: rules.flatMap((rule) => rule.required), forbidden: rules.flatMap((rule) => rule.forbidden) };
}

/** `root_required`: required and forbidden traits, no any-of. Throws 400. */
export function rootTraitRules(value: string): TraitRules {
  return parseTraits(value, { forbidden: true, anyOf: false });
}

function parseMemberOf(value: string): AggregateRules {
  const listed = value.startsWith("in:") || value.startsWith("!in:");
  if (value.includes(",") && !listed) {
    throw placementBadRequest(
      `Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid microversion. Got: ${value}`,
    );
  }
  const forbidden = value.startsWith("!");
  const texts = value.replace(/^!?(in:)?/, "").split(",");
  const uuids = texts.map((text) => {
    const uuid = readUuidLike(text);
    if (uuid === null)
      throw placementBadRequest(`${invalid} Expected 'member_of' parameter to contain valid UUID(s). Got: ${text}`);
    return aggregateUuid(uuid);
  });
  return forbidden ? { memberOf: [], forbidden: uuids } : { memberOf: [uuids], forbidden: [] };
}

/** All values of `member_of<suffix>`; several from 1.24, forbidden ones from 1.32. Throws 400. */
export function aggregateRules(call: Query, suffix = ""): AggregateRules {
  const values = call.query.getAll(`member_of${suffix}`);
  if (values.length > 1 && !call.version.has(24))
    throw placementBadRequest(`Multiple member_of${suffix} parameters are not supported`);
  const rules = values.map(parseMemberOf);
  const forbidden = rules.flatMap((rule) => rule.forbidden);
  if (forbidden.length > 0 && !call.version.has(32)) {
    throw placementBadRequest(
      `Forbidden member_of${suffix} parameters are not supported in the specified microversion`,
    );
  }
  return { memberOf: rules.flatMap((rule) => rule.memberOf), forbidden };
}

/** `in_tree<suffix>`: the last value. Throws 400. */
export function inTree(call: Query, suffix = ""): ProviderUuid | null {
  const value = call.query.getAll(`in_tree${suffix}`).at(-1);
  if (value === undefined) return null;
  const uuid = readUuidLike(value.trim());
  if (uuid === null)
    throw placementBadRequest(`${invalid} Expected 'in_tree' parameter to be a format of uuid. Got: ${value}`);
  return providerUuid(uuid);
}
