import { Transform, type TransformCallback } from "node:stream";

const SHORT_HEADER_BYTES = 2;
const MASKED = 0x80;
const LENGTH_BITS = 0x7f;
/** These values of the short length say that the length follows, in so many bytes. */
const EXTENDED: Readonly<Record<number, number>> = { 126: 2, 127: 8 };
/** With this key every byte stays as it is. */
const NO_MASK = Buffer.alloc(4);

/**
 * Turns the frames that a server sends into those of a client, which must be masked (RFC 6455, section 5.3). So two servers can be connected with
 * each other. The payloads pass unchanged and unbuffered.
 */
export class FrameMasker extends Transform {
  #header = Buffer.alloc(0);
  #payloadLeft = 0;

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    try {
      this.#pass(chunk);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #pass(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#payloadLeft > 0) {
        const part = rest.subarray(0, this.#payloadLeft);
        this.#payloadLeft -= part.length;
        this.push(part);
        rest = rest.subarray(part.length);
        continue;
      }
      const known = this.#header.length;
      const header = Buffer.concat([this.#header, rest.subarray(0, SHORT_HEADER_BYTES + 8 - known)]);
      const [, second = 0] = header;
      const extended = header.length < SHORT_HEADER_BYTES ? 0 : (EXTENDED[second & LENGTH_BITS] ?? 0);
      const length = SHORT_HEADER_BYTES + extended;
      if (header.length < length) {
        this.#header = header;
        break;
      }
      if ((second & MASKED) !== 0) throw new Error("a server has sent a masked frame");
      rest = rest.subarray(length - known);
      this.#header = Buffer.alloc(0);
      this.#payloadLeft = payloadLength(header, extended);
      header[1] = second | MASKED;
      this.push(Buffer.concat([header.subarray(0, length), NO_MASK]));
    }
  }
}

function payloadLength(header: Buffer, extended: number): number {
  if (extended === 2) return header.readUInt16BE(SHORT_HEADER_BYTES);
  if (extended === 8) return Number(header.readBigUInt64BE(SHORT_HEADER_BYTES));
  return (header[1] ?? 0) & LENGTH_BITS;
}
