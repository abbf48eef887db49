/** The six laws, the first one first. */
export const LAW_NAMES = [
  "no oversubscription",
  "no orphans",
  "no up-calls",
  "one home",
  "every accepted request ends",
  "a copy of each server exists",
] as const;

export function nameOfPromise(law: number | "groups"): string {
  return law === "groups" ? "server groups" : `law ${law}`;
}

/** A law that does not hold: which, of what, where, and how that is known. */
export interface Violation {
  /** By its number; `groups`: the promise of server groups, which is no law but is checked like one. */
  readonly law: 1 | 2 | 3 | 4 | 5 | 6 | "groups";
  /** What is wrong, in words that stay the same from reading to reading. */
  readonly what: string;
  /** Cell, provider, host or server that it concerns. */
  readonly where: string;
  /** The figures or rows that show it. */
  readonly proof: string;
  /** What a healing would have to look at; none: nothing that a healing could decide. */
  readonly subject?: ViolationSubject;
}

export type ViolationSubject =
  | { readonly kind: "consumer"; readonly cell: string; readonly uuid: string }
  | { readonly kind: "inventory"; readonly cell: string; readonly provider: string; readonly resourceClass: string }
  | { readonly kind: "request"; readonly serverUuid: string }
  | { readonly kind: "guest"; readonly cell: string; readonly host: string; readonly serverUuid: string };

/** One that is no mere sight of something in flight. */
export interface FoundViolation extends Violation {
  /** When it was first read, or, of the change feed, committed: ISO 8601. */
  readonly since: string;
}

/** The same for what one reading and the next say of the same thing, whatever the figures. */
export function keyOfViolation(violation: Violation): string {
  return `${violation.law}\n${violation.what}\n${violation.where}`;
}
