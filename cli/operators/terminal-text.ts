const ESCAPE = "\u001b";
const KEPT: readonly string[] = ["\n", "\r", "\t"];

/**
 * A guest's text for a terminal. Line breaks, tabs and colours stay; every other control character and the beginning of every other sequence goes: a guest writes what it
 * likes, and a terminal obeys sequences that change its title or the clipboard, or that make it answer as though the operator had typed.
 */
export function terminalText(text: string): string {
  return text.replaceAll(/(\p{Cc})(\[[0-9;:]{0,64}m)?/gu, (found, control: string, colour: string = "") => {
    if (KEPT.includes(control) || (control === ESCAPE && colour !== "")) return found;
    return colour;
  });
}
