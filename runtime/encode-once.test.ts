import { expect, test } from "vitest";
import { encodeOnce } from "./encode-once.ts";

test("a message is encoded once, however often it is sent; an equal one is another", () => {
  let encoded = 0;
  const codec = {
    encode: (message: { readonly id: number }) => {
      encoded += 1;
      return { finish: () => Uint8Array.of(message.id) };
    },
  };
  const message = { id: 7 };
  expect(encodeOnce(codec, message)).toBe(encodeOnce(codec, message));
  expect(encodeOnce(codec, { id: 7 })).toEqual(Uint8Array.of(7));
  expect(encoded).toBe(2);
});
