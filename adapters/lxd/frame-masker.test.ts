import { describe, expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { FrameMasker } from "./frame-masker.ts";

const FINAL_BINARY = 0x82;

/** A frame as a server sends it: without a mask. */
function serverFrame(payload: Buffer): Buffer {
  if (payload.length < 126) return Buffer.concat([Buffer.from([FINAL_BINARY, payload.length]), payload]);
  const isShort = payload.length < 65_536;
  const header = Buffer.alloc(isShort ? 4 : 10);
  header.set([FINAL_BINARY, isShort ? 126 : 127]);
  if (isShort) header.writeUInt16BE(payload.length, 2);
  else header.writeBigUInt64BE(BigInt(payload.length), 2);
  return Buffer.concat([header, payload]);
}

/** The same frame as a client sends it, with a mask that changes nothing. */
function clientFrame(payload: Buffer): Buffer {
  const frame = serverFrame(payload);
  const length = frame.length - payload.length;
  frame[1] = (frame[1] ?? 0) | 0x80;
  return Buffer.concat([frame.subarray(0, length), Buffer.alloc(4), payload]);
}

async function passed(chunks: readonly Buffer[]): Promise<Buffer> {
  const masker = new FrameMasker();
  const out: Buffer[] = [];
  masker.on("data", (chunk: Buffer) => out.push(chunk));
  for (const chunk of chunks) masker.write(chunk);
  masker.end();
  await new Promise((resolve, reject) => masker.once("end", resolve).once("error", reject));
  return Buffer.concat(out);
}

describe("frames of a server that are passed to another server", () => {
  test("are masked and otherwise unchanged, wherever the chunks are cut", async () => {
    const lengths = fc.array(fc.constantFrom(0, 1, 125, 126, 300, 65_535, 65_536), { minLength: 1, maxLength: 4 });
    const property = fc.asyncProperty(lengths, fc.integer({ min: 1, max: 40_000 }), async (sizes, cut) => {
      const payloads = sizes.map((size, index) => Buffer.alloc(size, index + 1));
      const sent = Buffer.concat(payloads.map(serverFrame));
      const chunks = [];
      for (let at = 0; at < sent.length; at += at < 32 ? 1 : cut)
        chunks.push(sent.subarray(at, at + (at < 32 ? 1 : cut)));
      expect((await passed(chunks)).equals(Buffer.concat(payloads.map(clientFrame)))).toBe(true);
    });
    await fc.assert(property, { numRuns: 50 });
  });

  test("end the connection when they are masked already", async () => {
    await expect(passed([clientFrame(Buffer.from("x"))])).rejects.toThrow("masked");
  });
});
