import type { RequestFilter } from "../translation-rule.ts";

/** Only the host that was named, whether host filters are asked about it (`requestedHost`) or not (`forcedHost`). */
export const namedHost: RequestFilter = ({ forcedHost, requestedHost }, draft) => {
  const named = [forcedHost, requestedHost].filter((host) => host !== "");
  const [first] = named;
  // Two that differ: no host is both.
  if (first !== undefined) draft.onlyHosts = new Set(named.every((host) => host === first) ? [first] : []);
  return null;
};
