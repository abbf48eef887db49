/** Byte strings laid end to end as one binary parameter, with the start (from 1) and the length of each part. */
export interface PackedBytes {
  readonly bytes: Buffer;
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
}

/**
 * Packs parts for SQL's `substring(bytes from start for length)`. An array of bytea would be escaped, sent at twice the length, and parsed.
 */
export function packBytes(parts: readonly Uint8Array[]): PackedBytes {
  let start = 1;
  const starts: number[] = [];
  for (const part of parts) {
    starts.push(start);
    start += part.length;
  }
  return { bytes: Buffer.concat(parts), starts, lengths: parts.map((part) => part.length) };
}
