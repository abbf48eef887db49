import { expect, test } from "vitest";
import { addressText } from "./address-text.ts";
import { hostPort } from "./setting-kinds.ts";

test.each([
  [{ host: "127.0.0.1", port: 80 }, "127.0.0.1:80"],
  [{ host: "host-7.example", port: 8774 }, "host-7.example:8774"],
  [{ host: "fd00::7", port: 0 }, "[fd00::7]:0"],
])("%j is written as %s, and read back", (address, text) => {
  expect(addressText(address)).toBe(text);
  expect(hostPort.parse(text)).toEqual(address);
});
