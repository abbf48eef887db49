import { expect, test } from "vitest";
import { rootDeviceOf } from "./instance-name.ts";

test("a server has a root device once a host has started its guest", () => {
  expect(rootDeviceOf({ launchedAtMs: null })).toBeNull();
  expect(rootDeviceOf({ launchedAtMs: 1 })).toBe("/dev/vda");
});
