/**
 * Returns the data of a text in base64 as plain base64, or null if it is none. Like Nova's decoder it leaves out every character that base64 does not have,
 * such as line ends, and reads nothing behind the padding. Source: Python's `binascii.a2b_base64`.
 */
export function base64Data(text: string): string | null {
  let data = "";
  let padding = 0;
  for (const character of text) {
    const inGroup = data.length % 4;
    if (character === "=") {
      if (inGroup >= 2) padding += 1;
      if (inGroup >= 2 && inGroup + padding >= 4) return data;
    } else if (/[A-Za-z0-9+/]/.test(character)) {
      padding = 0;
      data += character;
    }
  }
  return data.length % 4 === 0 ? data : null;
}
