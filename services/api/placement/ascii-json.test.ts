import { expect, test } from "vitest";
import { AsciiJson } from "./ascii-json.ts";

test("contains the written text, whatever its size and pieces", () => {
  const json = new AsciiJson();
  const pieces = Array.from({ length: 20_000 }, (_, at) => `"${at}":[${"x".repeat(at % 40)}],`);
  for (const piece of pieces) json.write(piece);
  json.write("y".repeat(200_000));
  expect(Buffer.from(json.bytes()).toString()).toBe(pieces.join("") + "y".repeat(200_000));
});

test("may be read before it is complete", () => {
  const json = new AsciiJson();
  json.write("[1");
  expect(Buffer.from(json.bytes()).toString()).toBe("[1");
  json.write(",2]");
  expect(Buffer.from(json.bytes()).toString()).toBe("[1,2]");
});

test("repeats earlier text, even text that is not encoded yet, and grows as needed", () => {
  const json = new AsciiJson();
  json.write("head,");
  json.write("x".repeat(50_000));
  const end = json.length;
  json.repeat(5, end);
  json.repeat(0, 4);
  expect(Buffer.from(json.bytes()).toString()).toBe(`head,${"x".repeat(100_000)}head`);
});

test("leaves its memory to the next one, which starts empty", () => {
  const first = new AsciiJson();
  first.write("x".repeat(300_000));
  const memory = first.bytes().buffer;
  first.release();
  first.release();
  const [second, third] = [new AsciiJson(), new AsciiJson()];
  second.write("[2]");
  third.write("[3]");
  expect(second.bytes().buffer).toBe(memory);
  expect(third.bytes().buffer).not.toBe(memory);
  expect(Buffer.from(second.bytes()).toString()).toBe("[2]");
});
