/** The bytes of an IPv4 or IPv6 address, or null when the text is not an address. */
export function parseAddress(text: string): readonly number[] | null {
  return text.includes(":") ? parseV6(text) : parseV4(text);
}

/** Whether both addresses have the same IP version and agree in their first `bits` bits. */
export function inSameNetwork(a: readonly number[], b: readonly number[], bits: number): boolean {
  if (a.length !== b.length) return false;
  return a.every((byte, index) => {
    const kept = Math.min(8, Math.max(0, bits - index * 8));
    const mask = (0xff << (8 - kept)) & 0xff;
    return (byte & mask) === (b[index]! & mask);
  });
}

function parseV4(text: string): number[] | null {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) <= 255)) return null;
  return parts.map(Number);
}

function parseV6(text: string): number[] | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map((half) => wordsOf(half));
  if (!head || tail === null) return null;
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const words = [...head, ...Array<number>(tail === undefined ? 0 : missing).fill(0), ...(tail ?? [])];
  return words.flatMap((word) => [word >> 8, word & 0xff]);
}

/** The 16-bit words of a part of an IPv6 address, which may end with an IPv4 address. */
function wordsOf(half: string): number[] | null {
  if (half === "") return [];
  const words: number[] = [];
  const groups = half.split(":");
  for (const [index, group] of groups.entries()) {
    const v4 = index === groups.length - 1 && group.includes(".") ? parseV4(group) : null;
    if (v4) words.push((v4[0]! << 8) | v4[1]!, (v4[2]! << 8) | v4[3]!);
    else if (/^[0-9a-f]{1,4}$/i.test(group)) words.push(Number.parseInt(group, 16));
    else return null;
  }
  return words;
}
