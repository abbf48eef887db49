import { expect, test } from "vitest";
import { decodeKept, encodeOnce } from "./encode-once.ts";

/** A codec that knows only the first byte of its messages, like a version older than the writer. */
function countingCodec() {
  const counts = { encoded: 0 };
  const codec = {
    encode: (message: { readonly id: number }) => {
      counts.encoded += 1;
      return { finish: () => Uint8Array.of(message.id) };
    },
    decode: (bytes: Uint8Array) => ({ id: bytes[0] ?? 0 }),
  };
  return { codec, counts };
}

test("a message is encoded once, however often it is sent, and an equal message is encoded separately", () => {
  const { codec, counts } = countingCodec();
  const message = { id: 7 };
  expect(encodeOnce(codec, message)).toBe(encodeOnce(codec, message));
  expect(encodeOnce(codec, { id: 7 })).toEqual(Uint8Array.of(7));
  expect(counts.encoded).toBe(2);
});

test("a decoded message is sent on as the bytes that were received, even if this version does not know all of its fields", () => {
  const { codec, counts } = countingCodec();
  const message = decodeKept(codec, Uint8Array.of(7, 8));
  expect(message).toEqual({ id: 7 });
  expect(encodeOnce(codec, message)).toEqual(Uint8Array.of(7, 8));
  expect(encodeOnce(codec, { ...message, id: 9 })).toEqual(Uint8Array.of(9));
  expect(counts.encoded).toBe(1);
});
