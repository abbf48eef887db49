import { expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { ipv4At, ipv4Offset } from "./ipv4.ts";

test("an address and its offset belong together", () => {
  expect(ipv4At("10.64.0.0", 260)).toBe("10.64.1.4");
  expect(ipv4At("10.64.0.0", 2 ** 22 - 1)).toBe("10.127.255.255");
  expect(ipv4Offset("10.64.0.0", "10.63.255.255")).toBe(-1);
  fc.assert(
    fc.property(fc.nat(2 ** 24 - 1), (offset) => ipv4Offset("200.0.0.0", ipv4At("200.0.0.0", offset)) === offset),
  );
});
