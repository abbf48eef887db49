/** The names of the six laws, in order. */
export const LAW_NAMES = [
  "no oversubscription",
  "no orphans",
  "no up-calls",
  "one home",
  "every accepted request ends",
  "a copy of each server exists",
] as const;

export function nameOfPromise(law: number | "groups" | "volumes"): string {
  if (law === "groups") return "server groups";
  return law === "volumes" ? "volumes in Cinder" : `law ${law}`;
}

/** A violation of a law: which law, what is wrong, where, and the proof. */
export interface Violation {
  /** The number of the law. `groups` stands for the policies of server groups, and `volumes` for the agreement with Cinder, which are no laws but are checked like one. */
  readonly law: 1 | 2 | 3 | 4 | 5 | 6 | "groups" | "volumes";
  /** The description of the violation, the same in every reading. */
  readonly what: string;
  /** The cell, provider, host or server concerned. */
  readonly where: string;
  /** The figures or rows that prove it. */
  readonly proof: string;
  /** The subject that a healing examines. Absent when a healing is impossible. */
  readonly subject?: ViolationSubject;
}

export type ViolationSubject =
  | { readonly kind: "consumer"; readonly cell: string; readonly uuid: string }
  | { readonly kind: "inventory"; readonly cell: string; readonly provider: string; readonly resourceClass: string }
  | { readonly kind: "request"; readonly serverUuid: string }
  | { readonly kind: "unasked"; readonly cell: string; readonly serverUuid: string }
  | { readonly kind: "guest"; readonly cell: string; readonly host: string; readonly serverUuid: string };

/** A violation that is confirmed or was read from the change feed, and so is not just work in flight. */
export interface FoundViolation extends Violation {
  /** When the violation was first read or, in the change feed, committed. ISO 8601. */
  readonly since: string;
}

/** A key that is equal for violations of the same thing in successive readings, whatever the figures. */
export function keyOfViolation(violation: Violation): string {
  return `${violation.law}\n${violation.what}\n${violation.where}`;
}
