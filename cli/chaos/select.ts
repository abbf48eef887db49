import { type Link, type LinkEnd, type Part, ROLES } from "./chaos-cloud.ts";

/**
 * Whether a plan's word means this: a role, `role@cell`, `role@above`, a name; for ends of links also `above`, `clients` and a
 * cell.
 */
export function isMeant(word: string, end: LinkEnd): boolean {
  const [head, cell] = word.split("@");
  if (cell !== undefined) return end.role === head && end.cell === (cell === "above" ? null : cell);
  return end.role === word || end.name === word || (!isRole(word) && end.cell === word);
}

/** Parts that a plan's word means. */
export function partsMeant(word: string, parts: readonly Part[]): readonly Part[] {
  return parts.filter((part) => part.cell !== word && isMeant(word, part));
}

/** Links that lead from what one word means to what the other means. */
export function linksMeant(from: string, to: string, links: readonly Link[]): readonly Link[] {
  return links.filter((link) => isMeant(from, link.from) && isMeant(to, link.to));
}

function isRole(word: string): boolean {
  return ROLES.some((role) => role === word);
}
