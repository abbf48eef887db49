import type { CellFacts } from "./host-facts.ts";

/** The key of aggregate metadata that names a failure domain: a rack, a room, a power feed. */
export const FAILURE_DOMAIN_KEY = "failure_domain";

/** The failure domain that the first of a host's aggregates names, or undefined when none names one. */
export function failureDomainOf(facts: CellFacts | undefined, root: number): string | undefined {
  if (!facts?.hasMetadata(FAILURE_DOMAIN_KEY)) return undefined;
  for (const { metadata } of facts.at(root)?.aggregates ?? []) {
    const domain = metadata.get(FAILURE_DOMAIN_KEY);
    if (domain !== undefined) return domain;
  }
  return undefined;
}
