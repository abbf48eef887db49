import { type NumberRange, numbersInRanges } from "../numbers-in-ranges.ts";

/** The greatest number that is accepted in a list. The kernel numbers CPUs and NUMA nodes from 0 and stays far below this. */
const NUMBER_MAX = 65_535;

/**
 * A whole number from a file, or null when the file is missing or holds anything else. Negative numbers are valid: the kernel writes -1 for
 * none.
 */
export function parseInteger(text: string | undefined): number | null {
  const trimmed = text?.trim() ?? "";
  return /^-?\d{1,15}$/.test(trimmed) ? Number(trimmed) : null;
}

/** A number that counts things: like `parseInteger`, but null for a negative number. */
export function parseCount(text: string | undefined): number | null {
  const read = parseInteger(text);
  return read === null || read < 0 ? null : read;
}

/**
 * Reads a list like `0-3,8,10-11` into ascending numbers. An empty text is an empty list. Null when the file is missing or is not such a
 * list.
 */
export function parseNumberList(text: string | undefined): readonly number[] | null {
  if (text === undefined) return null;
  const trimmed = text.trim();
  if (trimmed === "") return [];
  const found: NumberRange[] = [];
  for (const part of trimmed.split(",")) {
    const [, first, last] = /^\s*(\d{1,6})(?:-(\d{1,6}))?\s*$/.exec(part) ?? [];
    if (first === undefined) return null;
    const [low, high] = [Number(first), Number(last ?? first)];
    if (high < low || high > NUMBER_MAX) return null;
    found.push([low, high]);
  }
  return numbersInRanges(found);
}

/**
 * Reads a bit mask like `ff,00000003`, in groups of 32 bits, into the ascending numbers of its bits. Null when the file is missing or is
 * not a mask.
 */
export function parseNumberMask(text: string | undefined): readonly number[] | null {
  const groups = text?.trim().split(",") ?? [""];
  if (groups.length > (NUMBER_MAX + 1) / 32 || !groups.every((group) => /^(0x)?[0-9a-f]{1,8}$/i.test(group)))
    return null;
  return groups.reverse().flatMap((group, index) => {
    const bits = Number.parseInt(group, 16);
    return Array.from({ length: 32 }, (_, bit) => bit)
      .filter((bit) => ((bits >>> bit) & 1) === 1)
      .map((bit) => index * 32 + bit);
  });
}

/** The bytes in a line like `MemTotal: 16384 kB`, with or without `Node 0` before it, or null when there is no such line. */
export function parseMemoryLine(text: string | undefined, field: string): number | null {
  const pattern = new RegExp(`^(?:Node +\\d+ +)?${field}:\\s+(\\d{1,12}) kB\\s*$`, "m");
  const kib = pattern.exec(text ?? "")?.[1];
  return kib === undefined ? null : Number(kib) * 1024;
}

/** The text without surrounding spaces, or null when it is missing or empty. */
export function parseWord(text: string | undefined): string | null {
  return text?.trim() || null;
}

/** A hexadecimal PCI id like `0x8086`, without the 0x and in lower case, or null when the file is missing or holds anything else. */
export function parsePciId(text: string | undefined, digits: number): string | null {
  const [, id] = /^0x([0-9a-f]+)$/i.exec(text?.trim() ?? "") ?? [];
  return id === undefined || id.length > digits ? null : id.toLowerCase().padStart(digits, "0");
}
