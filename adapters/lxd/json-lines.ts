import type { Duplex } from "node:stream";

const LINE_BYTES_MAX = 4_096;
const NEWLINE = 10;

/**
 * Reads the next line of a connection, a JSON object, and leaves what follows in it. Rejects when the connection ends before, when the line is
 * longer than 4 KiB, and when it is no JSON.
 */
export async function readJsonLine(connection: Duplex): Promise<Readonly<Record<string, unknown>>> {
  let text = Buffer.alloc(0);
  for (;;) {
    const chunk = connection.read() as Buffer | null;
    if (chunk === null) {
      await moreOf(connection);
      continue;
    }
    text = Buffer.concat([text, chunk]);
    const end = text.indexOf(NEWLINE);
    if ((end < 0 ? text.length : end) > LINE_BYTES_MAX) throw new Error("the other agent's line is too long");
    if (end < 0) continue;
    if (end + 1 < text.length) connection.unshift(text.subarray(end + 1));
    const value: unknown = JSON.parse(text.subarray(0, end).toString("utf8"));
    if (typeof value !== "object" || value === null) throw new Error("the other agent's line is no JSON object");
    return value as Readonly<Record<string, unknown>>;
  }
}

export function writeJsonLine(connection: Duplex, value: Readonly<Record<string, unknown>>): void {
  connection.write(`${JSON.stringify(value)}\n`);
}

async function moreOf(connection: Duplex): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ended = () => reject(new Error("the other agent has closed the connection"));
  if (connection.destroyed || connection.readableEnded) ended();
  connection.once("readable", resolve).once("end", ended).once("close", ended);
  try {
    await promise;
  } finally {
    connection.off("readable", resolve).off("end", ended).off("close", ended);
  }
}
