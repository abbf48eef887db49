import { badExtraSpec } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

const KEY = "hw:pmem";

/** Reads `hw:pmem=4GB,4GB,LARGE`: it adds a CUSTOM_PMEM_NAMESPACE_<label> for each label. */
export const persistentMemory: TranslationRule = ({ flavor }, draft) => {
  const text = flavor.extraSpecs[KEY];
  if (text === undefined || text === "") return null;
  for (const label of text.split(",")) {
    const name = label
      .trim()
      .toUpperCase()
      .replace(/[^A-Z0-9_]/g, "_");
    if (name === "") return badExtraSpec(KEY, text, "labels of persistent memory, separated by commas");
    draft.add("", `CUSTOM_PMEM_NAMESPACE_${name}`, 1);
  }
  return null;
};
