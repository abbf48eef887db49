/**
 * A position in a database's write-ahead log, in bytes. It is a plain number, which is exact up to 2^53, or 8 PiB of log since the server
 * was created.
 */
export type Lsn = number;

/** Reads Postgres's own notation, `16/B374D848`. */
export function parseLsn(text: string): Lsn {
  const match = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i.exec(text);
  if (match === null) throw new Error(`not a log position: ${text}`);
  return lsnOf(Number.parseInt(match[1]!, 16), Number.parseInt(match[2]!, 16));
}

export function formatLsn(lsn: Lsn): string {
  return `${Math.floor(lsn / 2 ** 32).toString(16)}/${(lsn % 2 ** 32).toString(16)}`.toUpperCase();
}

/** Combines the upper and lower 32 bits. */
export function lsnOf(upper: number, lower: number): Lsn {
  const lsn = upper * 2 ** 32 + lower;
  if (!Number.isSafeInteger(lsn)) throw new Error(`log position ${upper}/${lower} is beyond 2^53`);
  return lsn;
}
