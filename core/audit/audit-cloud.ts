import type { AllocationItem } from "../ledger/model.ts";
import { checkCapacity } from "./check-capacity.ts";
import { checkCopies } from "./check-copies.ts";
import { checkEndings } from "./check-endings.ts";
import { checkGroups } from "./check-groups.ts";
import { checkHomes } from "./check-homes.ts";
import { checkOrphans } from "./check-orphans.ts";
import { checkVolumes } from "./check-volumes.ts";
import type { AuditedConsumer, CellReading, CloudFacts } from "./facts.ts";
import type { Violation } from "./violation.ts";

/**
 * Checks laws 1, 2, 4, 5 and 6 and the policies of server groups on one reading. Work in flight may look like a violation, so a
 * ViolationTracker keeps only what persists. Law 3 does not depend on data and is checked by `checkUpCalls`.
 */
export function auditCloud(facts: CloudFacts, patienceMs: number): Violation[] {
  return [
    ...facts.cells.flatMap((cell) => [
      ...checkCapacity(capacityFactsOf(cell)),
      ...checkVolumes(cell),
      ...checkGroups(cell),
    ]),
    ...auditServers(facts, patienceMs),
  ];
}

/**
 * The part of `auditCloud` that judges each server by itself: laws 2, 4, 5 and 6. The facts may be those of a range of UUIDs: the servers,
 * consumers, tasks, requests and guests of the range, with all hosts, providers and moves of each cell.
 */
export function auditServers(facts: CloudFacts, patienceMs: number): Violation[] {
  return [
    ...facts.cells.flatMap((cell) => [...checkOrphans(cell), ...checkCopies(cell)]),
    ...checkHomes(facts),
    ...checkEndings(facts, patienceMs),
  ];
}

/** The facts of a whole reading that `checkCapacity` takes. Throws when the reading has neither sums nor the amounts of all items. */
export function capacityFactsOf({
  cell,
  kept,
  ledger,
  allocated,
}: Pick<CellReading, "cell" | "kept" | "ledger" | "allocated">) {
  const sums = allocated ?? ledger.consumers.flatMap(({ items }) => items.map(wholeItem));
  return { cell, ...(kept !== undefined && { kept }), providers: ledger.providers, allocated: sums };
}

function wholeItem({ provider, resourceClass, amount }: AuditedConsumer["items"][number]): AllocationItem {
  if (resourceClass === undefined || amount === undefined)
    throw new Error("the amounts of the allocations were not read, so `allocated` is needed");
  return { provider, resourceClass, amount };
}
