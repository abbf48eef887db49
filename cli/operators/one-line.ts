/** Puts a text on one line, and replaces control characters, which a terminal would obey. Reasons come from drivers and may contain both. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s*[\r\n]+\s*/g, " ").replaceAll(/\p{Cc}/gu, "?");
}
