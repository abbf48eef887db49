import { trait } from "../../../ledger/ids.ts";
import type { RequestFilter } from "../translation-rule.ts";

/**
 * A client sets this trait on a host's root to disable the host through the ledger alone. The view knows hosts that operators disable even
 * without it.
 */
export const DISABLED_TRAIT = trait("COMPUTE_STATUS_DISABLED");

/** Excludes hosts whose root has the trait for disabled hosts. This filter is always on. */
export const disabledHosts: RequestFilter = (_, draft) => {
  draft.forbidden.add(DISABLED_TRAIT);
  return null;
};
