import { resourceClass, trait } from "../../ledger/ids.ts";
import type { GroupDraft, HostRequestDraft } from "./host-request-draft.ts";
import { badExtraSpec, type RequestRefusal } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

/** The keys of resources and traits: the prefix, the group's suffix and the name. */
export const SPEC_KEY = /^(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)$/;
const NAME = /^[A-Z0-9_]{1,255}$/;
const SUFFIX = /^[a-zA-Z0-9_-]{1,64}$/;
const AMOUNT = /^\d{1,10}$/;
const AMOUNT_MAX = 2 ** 31 - 1;

/**
 * Reads `resources:CLASS=N` and `resourcesX:CLASS=N` (0 removes the class), `trait:NAME` and `traitX:NAME` = required or forbidden,
 * `group_policy` = none or isolate, `same_subtree` = comma-separated suffixes (several lists are separated by semicolons). It ignores extra
 * specs of other kinds. Unlike Nova, which logs and ignores an unreadable value, it refuses one.
 */
export const extraSpecGroups: TranslationRule = ({ flavor }, draft) => {
  for (const [key, value] of Object.entries(flavor.extraSpecs)) {
    const refused = readExtraSpec(draft, key, value);
    if (refused) return refused;
  }
  return null;
};

function readExtraSpec(draft: HostRequestDraft, key: string, value: string): RequestRefusal | null {
  if (key === "group_policy") {
    if (value !== "none" && value !== "isolate") return badExtraSpec(key, value, "none or isolate");
    draft.groupPolicy = value;
    return null;
  }
  if (key === "same_subtree") return addSubtrees(draft, key, value);
  const match = SPEC_KEY.exec(key);
  if (!match) return null;
  const [, prefix, suffix = "", name = ""] = match;
  if (!NAME.test(name))
    return badExtraSpec(key, value, "a key whose name consists of upper-case letters, digits and _");
  const group = draft.namedGroup(suffix);
  return prefix === "resources" ? addResource(group, key, name, value) : addTrait(group, key, name, value);
}

function addSubtrees(draft: HostRequestDraft, key: string, value: string): RequestRefusal | null {
  for (const list of value.split(";")) {
    const suffixes = list.split(",").map((suffix) => suffix.trim());
    if (!suffixes.every((suffix) => SUFFIX.test(suffix)))
      return badExtraSpec(key, value, "suffixes of numbered groups, separated by commas, like _A,_B");
    draft.sameSubtree.push(suffixes);
  }
  return null;
}

function addResource(group: GroupDraft, key: string, name: string, value: string): RequestRefusal | null {
  if (!AMOUNT.test(value) || Number(value) > AMOUNT_MAX)
    return badExtraSpec(key, value, `a whole number from 0 to ${AMOUNT_MAX}`);
  group.resources.set(resourceClass(name), Number(value));
  return null;
}

function addTrait(group: GroupDraft, key: string, name: string, value: string): RequestRefusal | null {
  if (value === "required") group.required.add(trait(name));
  else if (value === "forbidden") group.forbidden.add(trait(name));
  else return badExtraSpec(key, value, "required or forbidden");
  return null;
}
