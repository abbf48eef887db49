import { checkCapacity } from "./check-capacity.ts";
import { checkCopies } from "./check-copies.ts";
import { checkEndings } from "./check-endings.ts";
import { checkGroups } from "./check-groups.ts";
import { checkHomes } from "./check-homes.ts";
import { checkOrphans } from "./check-orphans.ts";
import type { CloudFacts } from "./facts.ts";
import type { Violation } from "./violation.ts";

/**
 * Checks laws 1, 2, 4, 5 and 6 and the policies of server groups on one reading. Work in flight may look like a violation, so a
 * ViolationTracker keeps only what persists. Law 3 does not depend on data and is checked by `checkUpCalls`.
 */
export function auditCloud(facts: CloudFacts, patienceMs: number): Violation[] {
  return [
    ...facts.cells.flatMap((cell) => [
      ...checkCapacity(cell),
      ...checkOrphans(cell),
      ...checkGroups(cell),
      ...checkCopies(cell),
    ]),
    ...checkHomes(facts),
    ...checkEndings(facts, patienceMs),
  ];
}
