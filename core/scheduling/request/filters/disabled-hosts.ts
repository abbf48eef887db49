import { trait } from "../../../ledger/ids.ts";
import type { RequestFilter } from "../translation-rule.ts";

/** Set on a host's root by whoever disables it through the ledger alone; hosts disabled by an operator are known to the view anyway. */
export const DISABLED_TRAIT = trait("COMPUTE_STATUS_DISABLED");

/** No host whose root says that it is disabled. Always on. */
export const disabledHosts: RequestFilter = (_, draft) => {
  draft.forbidden.add(DISABLED_TRAIT);
  return null;
};
