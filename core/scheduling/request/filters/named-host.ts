import type { RequestFilter } from "../translation-rule.ts";

/** Admits only the named host, whether host filters apply to it (`requestedHost`) or not (`forcedHost`). */
export const namedHost: RequestFilter = ({ forcedHost, requestedHost }, draft) => {
  const named = [forcedHost, requestedHost].filter((host) => host !== "");
  const [first] = named;
  // When the two names differ, no host has both.
  if (first !== undefined) draft.onlyHosts = new Set(named.every((host) => host === first) ? [first] : []);
  return null;
};
