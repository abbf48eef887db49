/** Puts a text on one line, and replaces control characters, which a terminal would obey. Reasons come from drivers and may contain both. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, (gap) => (/[\r\n]/.test(gap) ? " " : gap)).replaceAll(/\p{Cc}/gu, "?");
}
