import type { Violation } from "./violation.ts";

/** What a conductor may be told and do, read from its declaration and from its NATS user's permissions. */
export interface ConductorReach {
  /** Names of all of its settings. */
  readonly settings: readonly string[];
  readonly cell: string;
  /** Subjects that its NATS user may publish to, JetStream's own (`$JS.…`) left out. */
  readonly publishes: readonly string[];
}

/** Settings that name something above the cell, by their names everywhere (`databaseUrl` is the API database's). */
const ABOVE = new Set(["databaseUrl", "redisUrl", "apiUrl"]);

/**
 * Law 3, statically: a conductor is given no address of anything above its cell, and its NATS user publishes nothing but its
 * cell's events.
 */
export function checkUpCalls(reach: ConductorReach): Violation[] {
  const violations: Violation[] = reach.settings
    .filter((name) => ABOVE.has(name))
    .map((name) => ({
      law: 3,
      what: "a conductor is told where something above its cell is",
      where: `setting ${name}`,
      proof: "it is in the conductor's declaration",
    }));
  for (const subject of reach.publishes) {
    if (subject === `cell.${reach.cell}.events`) continue;
    violations.push({
      law: 3,
      what: "a conductor may publish beyond its cell's events",
      where: `cell ${reach.cell}`,
      proof: `its NATS user may publish to ${subject}`,
    });
  }
  return violations;
}
