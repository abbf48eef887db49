import { checkCapacity } from "./check-capacity.ts";
import { checkCopies } from "./check-copies.ts";
import { checkEndings } from "./check-endings.ts";
import { checkGroups } from "./check-groups.ts";
import { checkHomes } from "./check-homes.ts";
import { checkOrphans } from "./check-orphans.ts";
import type { CloudFacts } from "./facts.ts";
import type { Violation } from "./violation.ts";

/**
 * Laws 1, 2, 4, 5 and 6 and the rules of server groups on one reading. What is in flight may show up: a ViolationTracker keeps what persists.
 * Law 3 is no matter of data: `checkUpCalls`.
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
