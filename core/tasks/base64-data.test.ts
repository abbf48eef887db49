import { expect, test } from "vitest";
import { base64Data } from "./base64-data.ts";

/** The answers are those of Python's `base64.b64decode`. */
test.each([
  ["", ""],
  ["YWJj", "abc"],
  ["YQ==", "a"],
  ["YWI=", "ab"],
  ["YW\nJj\r\n", "abc"],
  ["!!", ""],
  ["-Y_W~Jj", "abc"],
  ["=YQ==", "a"],
  ["YQ==YWJj", "a"],
  ["YWI=c", "ab"],
  ["YQ=Q=", "a\u0004"],
  ["===", ""],
])("%j is the data %j", (text, data) => {
  expect(Buffer.from(base64Data(text) ?? "none", "base64").toString("latin1")).toBe(data);
  expect(base64Data(text)).not.toBeNull();
});

test.each(["hello", "A", "A===", "YQ", "YQ=", "YWI", "YQ=Q"])("%j is no base64", (text) => {
  expect(base64Data(text)).toBeNull();
});

test("a text of 65,535 characters is read", () => {
  expect(base64Data("YWJj\n".repeat(13_107))).toBe("YWJj".repeat(13_107));
});
