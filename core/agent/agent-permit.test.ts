import { expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import { helloRefusal, isCellWide, matchesPattern, permitOfUris, urisOfPermit } from "./agent-permit.ts";

const permit = { agentIds: ["rack-1"], hosts: ["rack-1-*", "spare"] };

test("reads the permit back from a certificate's URIs and ignores other URIs", () => {
  expect(urisOfPermit(permit)).toEqual(["berth:agent:rack-1", "berth:host:rack-1-*", "berth:host:spare"]);
  expect(permitOfUris(["https://x", ...urisOfPermit(permit), "berth:other:y"])).toEqual(permit);
  expect([isCellWide(permitOfUris(["https://x"])), isCellWide(permit)]).toEqual([true, false]);
});

test.each([
  ["the agent with its hosts", "rack-1", ["rack-1-7", "spare"], null],
  ["the agent without hosts", "rack-1", [], null],
  ["another agent", "rack-2", [], /is for agent rack-1, not for agent rack-2/],
  [
    "a host of another agent",
    "rack-1",
    ["rack-1-7", "rack-2-7"],
    /allows the hosts rack-1-\*, spare, and not rack-2-7:/,
  ],
  ["a host that only begins alike", "rack-1", ["spares"], /not spares:/],
  ["many hosts of others", "rack-1", ["a", "b", "c", "d", "e", "f", "g"], /not a, b, c, d, e and 2 more/],
])("%s: what a hello may say", (_, agentId, hosts, refusal) => {
  const refused = helloRefusal(permit, { agentId, hosts });
  if (refusal === null) expect(refused).toBeNull();
  else expect(refused).toMatch(refusal);
});

test("a certificate that names no agent allows nothing", () => {
  expect(helloRefusal({ agentIds: [], hosts: [] }, { agentId: "a", hosts: [] })).toMatch(/names no agent/);
  expect(helloRefusal({ agentIds: [], hosts: ["*"] }, { agentId: "a", hosts: [] })).toMatch(/not for agent a/);
});

test("a pattern matches the same names as the equivalent regular expression", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 12 });
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", ".", "*"), maxLength: 8 });
  fc.assert(
    fc.property(text, pattern, (name, glob) => {
      const meaning = new RegExp(`^${glob.replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
      expect(matchesPattern(name, glob)).toBe(meaning.test(name));
    }),
    { numRuns: 2_000 },
  );
});
