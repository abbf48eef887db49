import { expect, test } from "vitest";
import { addressesContaining, tokenSourceOf } from "./list-by-tokens.ts";

test.each([
  ["^10.0.0.7$", ["10.0.0.7"]],
  ["^10\\.0\\.0\\.7$", ["10.0.0.7"]],
  ["10.0.0.7$", ["10.0.0.7", "110.0.0.7", "210.0.0.7"]],
  ["^10.0.0.25", ["10.0.0.25", "10.0.0.250", "10.0.0.251", "10.0.0.252", "10.0.0.253", "10.0.0.254", "10.0.0.255"]],
  ["^300.0.0.7$", []],
  ["10.0.0", null],
  ["10.0.0.", null],
  ["10.0.0.7.", null],
  ["10.0.0.[7]", null],
  ["1000.0.0.7", null],
  ["", null],
])("the addresses that contain %s are %j", (text, expected) => {
  expect(addressesContaining(text)).toEqual(expected);
});

test("an address without anchors may be the middle of another one", () => {
  const found = addressesContaining("1.2.3.4") ?? [];
  expect(found).toHaveLength(26 * 11);
  expect(found).toContain("251.2.3.49");
});

test.each([
  [
    { ip: "^10.0.0.7$", description: "x" },
    { tokens: ["ip=10.0.0.7"], isChangeable: false, named: [] },
  ],
  [{ ip: "10.0" }, null],
  [{ ip6: "fd00" }, { tokens: ["ip6"], isChangeable: false, named: [] }],
  [{ launch_index: "0" }, null],
  [{ launch_index: "2" }, { tokens: ["launch_index=2"], isChangeable: false, named: [] }],
  [{ auto_disk_config: "1" }, null],
  [{ auto_disk_config: "0" }, { tokens: ["manual_disk"], isChangeable: true, named: [] }],
  [{ kernel_id: "^$" }, null],
  [{ kernel_id: "x" }, { tokens: ["kernel_id"], isChangeable: false, named: [] }],
  [
    { hostname: "^web-server1$" },
    { tokens: ["hostname"], isChangeable: true, named: [{ hasWord: "server1" }, { oddlyNamed: true }] },
  ],
  [
    { hostname: "server-150007" },
    { tokens: ["hostname"], isChangeable: true, named: [{ hasWord: "150007" }, { oddlyNamed: true }] },
  ],
  [{ hostname: "we-b1" }, null],
  [{ description: "a web" }, { tokens: ["description"], isChangeable: true, named: [{ nameContains: "a web" }] }],
  [{ description: "ab" }, null],
  [{ hostname: "web.*" }, null],
  [{}, null],
])("filters by %j look for %j", (filters: Readonly<Record<string, string>>, expected) => {
  const source = tokenSourceOf((name) => filters[name], undefined);
  expect(source).toEqual(expected === null ? null : { kind: "tokens", ...expected });
});

test("a filter by the config drive looks for the servers that have one", () => {
  expect(tokenSourceOf(() => undefined, true)?.tokens).toEqual(["config_drive"]);
  expect(tokenSourceOf(() => undefined, false)).toBeNull();
});
