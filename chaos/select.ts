import { type Link, type LinkEnd, type Part, ROLES } from "./chaos-cloud.ts";

/**
 * Whether a plan's word matches this part: a role, `role@cell`, `role@above` or a name. For ends of links, it may also be `above`,
 * `clients` or a cell.
 */
export function isMeant(word: string, end: LinkEnd): boolean {
  const [head, cell] = word.split("@");
  if (cell !== undefined) return end.role === head && end.cell === (cell === "above" ? null : cell);
  return end.role === word || end.name === word || (!isRole(word) && end.cell === word);
}

/** The parts that a plan's word matches. */
export function partsMeant(word: string, parts: readonly Part[]): readonly Part[] {
  return parts.filter((part) => part.cell !== word && isMeant(word, part));
}

/** The links from parts that one word matches to parts that the other matches. */
export function linksMeant(from: string, to: string, links: readonly Link[]): readonly Link[] {
  return links.filter((link) => isMeant(from, link.from) && isMeant(to, link.to));
}

function isRole(word: string): boolean {
  return ROLES.some((role) => role === word);
}
