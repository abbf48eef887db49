import { QmpError } from "./qmp-error.ts";

/** QEMU's longest answers (its CPU models) have some 100 KB. */
const LINE_BYTES_MAX = 4 * 1_048_576;
const NEWLINE = 0x0a;

/** Splits what arrives on a QMP socket into messages, one JSON object a line, however the bytes are torn into chunks. */
export class QmpLines {
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  /** The messages that this chunk completes. Throws a QmpError when a line is too long or is not a JSON object. */
  take(chunk: Buffer): readonly Readonly<Record<string, unknown>>[] {
    const messages: Readonly<Record<string, unknown>>[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...this.#pending, chunk.subarray(from, end)])
        .toString("utf8")
        .trim();
      this.#pending = [];
      this.#pendingBytes = 0;
      from = end + 1;
      if (line !== "") messages.push(parse(line));
    }
    if (from < chunk.length) {
      this.#pending.push(chunk.subarray(from));
      this.#pendingBytes += chunk.length - from;
    }
    if (this.#pendingBytes > LINE_BYTES_MAX)
      throw new QmpError("malformed", `QEMU sent a line of more than ${LINE_BYTES_MAX} bytes`);
    return messages;
  }
}

function parse(line: string): Readonly<Record<string, unknown>> {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    throw new QmpError("malformed", `QEMU sent no JSON: ${line.slice(0, 100)}`);
  }
  if (typeof message !== "object" || message === null || Array.isArray(message))
    throw new QmpError("malformed", `QEMU sent no JSON object: ${line.slice(0, 100)}`);
  return message as Readonly<Record<string, unknown>>;
}
