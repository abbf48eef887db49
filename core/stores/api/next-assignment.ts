import type { AssignCell } from "./api-store.ts";

/** The number under which a request is assigned. See AssignCell. */
export function nextAssignment({ from, to, assignment = 0, next }: AssignCell): number {
  return next ?? (from === null || from === to ? assignment : assignment + 1);
}
