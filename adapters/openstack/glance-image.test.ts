import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { readGlanceImage } from "./glance-image.ts";

const id = randomUUID();
const shown = { id, status: "active", os_hash_algo: "sha512", os_hash_value: "AB".repeat(64) };

test("the hash of an image is read in small letters", () => {
  expect(readGlanceImage(shown)).toMatchObject({ id, status: "active", sha512: "ab".repeat(64) });
});

test("an image whose hash is none cannot be used", () => {
  const value = "/../../../../proc/kcore";
  expect(readGlanceImage({ ...shown, os_hash_value: value })).toMatchObject({ status: "other", sha512: null });
});

test("an answer whose image has no UUID is refused", () => {
  expect(() => readGlanceImage({ ...shown, id: "../x" })).toThrow(/has no image/);
});
