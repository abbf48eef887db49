import { trait } from "../../../ledger/ids.ts";
import type { RequestFilter } from "../translation-rule.ts";

const PREFIX = "trait:";

/** Excludes members of aggregates whose metadata requires a trait (`trait:X=required`) that the request does not require. */
export const isolatedAggregates: RequestFilter = (_, draft, { aggregates, settings }) => {
  if (!settings.enableIsolatedAggregateFiltering) return null;
  const required = draft.requiredTraits();
  const closed = aggregates.filter(({ metadata }) =>
    [...metadata].some(
      ([key, value]) =>
        key.startsWith(PREFIX) && value === "required" && !required.has(trait(key.slice(PREFIX.length))),
    ),
  );
  draft.forbidAggregates(closed.map(({ uuid }) => uuid));
  return null;
};
