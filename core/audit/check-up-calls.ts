import type { Violation } from "./violation.ts";

/** The permitted settings and subjects of a conductor, read from its declaration and from its NATS user's permissions. */
export interface ConductorReach {
  /** Names of all of its settings. */
  readonly settings: readonly string[];
  readonly cell: string;
  /** Subjects that its NATS user may publish to, except JetStream's own (`$JS.…`). */
  readonly publishes: readonly string[];
}

/** Settings that name something above the cell. The names are the same in all services (`databaseUrl` is the API database's). */
const ABOVE = new Set(["databaseUrl", "redisUrl", "apiUrl"]);

/**
 * Checks law 3 statically: a conductor gets no address of anything above its cell, and its NATS user may publish only its cell's events.
 */
export function checkUpCalls(reach: ConductorReach): Violation[] {
  const violations: Violation[] = reach.settings
    .filter((name) => ABOVE.has(name))
    .map((name) => ({
      law: 3,
      what: "a conductor has a setting for a service outside its cell",
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
