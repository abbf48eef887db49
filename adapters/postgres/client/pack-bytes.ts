/** Byte strings laid end to end: one binary parameter, and where each part begins (from 1) and how long it is. */
export interface PackedBytes {
  readonly bytes: Buffer;
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
}

/** Packs parts for SQL's `substring(bytes from start for length)`: an array of bytea would be escaped, sent twice as long, and parsed. */
export function packBytes(parts: readonly Uint8Array[]): PackedBytes {
  let start = 1;
  const starts: number[] = [];
  for (const part of parts) {
    starts.push(start);
    start += part.length;
  }
  return { bytes: Buffer.concat(parts), starts, lengths: parts.map((part) => part.length) };
}
