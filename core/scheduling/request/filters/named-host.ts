import type { RequestFilter } from "../translation-rule.ts";

/** Admits only the named host, whether host filters apply to it (`requestedHost`) or not (`forcedHost`). */
export const namedHost: RequestFilter = ({ forcedHost, requestedHost }, draft) => {
  const named = [forcedHost, requestedHost].filter((host) => host !== "");
  const [first] = named;
  // No host has two names: when they differ, no host is admitted.
  if (first !== undefined) draft.onlyHosts = new Set(named.every((host) => host === first) ? [first] : []);
  return null;
};
