import { trait } from "../../ledger/ids.ts";
import type { TranslationRule } from "./translation-rule.ts";

/** Each request group of a port (Neutron's `resource_request`: minimum bandwidth with its physical network's traits) is one of the server's. */
export const portGroups: TranslationRule = ({ portRequests }, draft) => {
  for (const { suffix, resources, requiredTraits } of portRequests) {
    for (const [name, amount] of Object.entries(resources)) draft.add(suffix, name, amount);
    for (const name of requiredTraits) draft.group(suffix).required.add(trait(name));
  }
  return null;
};
