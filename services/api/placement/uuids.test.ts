import { describe, expect, test } from "vitest";
import { isUuidLike, readUuidLike } from "./uuids.ts";

const CANONICAL = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

test("a long run of braces is no UUID", () => {
  expect(isUuidLike(`x${"{".repeat(200_000)}x`)).toBe(false);
});

describe("a UUID", () => {
  test.each([
    CANONICAL,
    CANONICAL.toUpperCase(),
    CANONICAL.replaceAll("-", ""),
    `{${CANONICAL}}`,
    `{{${CANONICAL}}}`,
    `urn:uuid:${CANONICAL}`,
    "0a-1b-2c-3d4e5f60718293a4b5c6d7e8f9",
  ])("may be written %s", (text) => {
    expect(isUuidLike(text)).toBe(true);
    expect(readUuidLike(text)).toBe(CANONICAL);
  });

  test.each([
    "",
    "-",
    CANONICAL.slice(1),
    `${CANONICAL}0`,
    CANONICAL.replace("a", "g"),
    `${CANONICAL}\u0000`,
    "０".repeat(32),
  ])("is not %j", (text) => {
    expect(isUuidLike(text)).toBe(false);
    expect(readUuidLike(text)).toBeNull();
  });
});
