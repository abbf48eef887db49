/**
 * Returns a text without the given characters at its end. An expression such as `/\/+$/` would try again from each of their positions, and take a time that
 * grows with the square of the text's length.
 */
export function withoutTrailing(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
