import { expect, test } from "vitest";
import { isLoopbackHost } from "./loopback.ts";

test.each([
  ["127.0.0.1", true],
  ["127.1.2.3", true],
  ["localhost", true],
  ["LOCALHOST", true],
  ["::1", true],
  ["::ffff:127.0.0.1", true],
  ["0.0.0.0", false],
  ["::", false],
  ["::ffff:0.0.0.0", false],
  ["10.0.0.1", false],
  ["127.example.org", false],
  ["localhost.example.org", false],
  ["", false],
])("knows whether %j is reachable from this machine alone", (host, is) => {
  expect(isLoopbackHost(host)).toBe(is);
});
