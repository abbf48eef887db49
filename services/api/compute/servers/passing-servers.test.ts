import { expect, test } from "vitest";
import { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { readFilters } from "./list-filters.ts";
import { MatchWork } from "./match-work.ts";
import { passingServers } from "./passing-servers.ts";

const serversNamed = (names: readonly string[]) =>
  names.map((name) => ({ server: { spec: ServerSpec.fromPartial({ name, description: name }) } }) as KnownServer);

/** How many turns of the event loop others get until the work is done. */
async function turnsOfOthers(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const others = () => {
    turns += 1;
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  await work();
  isOver = true;
  return turns;
}

test("others are answered while an expression takes much work for each server", async () => {
  const call = { minor: 90, identity: { isAdmin: true }, policy: { allows: () => true } } as unknown as KnownCall;
  const zones = { of: () => "nova", byHost: new Map(), defaultZone: "nova" };
  const { matchers, rest } = readFilters(new QueryReader({ hostname: "(a.{0,120}){2}[yz]$" }), call, zones);
  const matches = (known: KnownServer) => matchers.every((matches) => matches(known));
  // The automaton of the expression overflows with these, and then each character counts.
  const hostnameOf = (at: number) =>
    `${at.toString(2)}${"abba".repeat(60)}`.replaceAll("0", "a").replaceAll("1", "b") + (at % 2 === 0 ? "y" : "");
  const servers = Array.from({ length: 60 }, (_, at) => ({
    server: { spec: { name: "n", hostname: hostnameOf(at) } },
  }));
  const passing: KnownServer[] = [];
  const turns = await turnsOfOthers(async () => {
    passing.push(...(await passingServers(servers as unknown as KnownServer[], { matches, rest })));
  });
  expect(passing).toHaveLength(30);
  expect(turns).toBeGreaterThanOrEqual(5);
});

test("filters that cost nothing take no turns", async () => {
  const work = new MatchWork();
  const servers = serversNamed(Array.from({ length: 1_000 }, (_, at) => `web-${at}`));
  const matches = ({ server }: KnownServer) => work.spend(1) && server.spec.name.endsWith("7");
  const filters = { matches, rest: () => work.rest() };
  expect(await turnsOfOthers(() => passingServers(servers, filters))).toBe(0);
  expect(await passingServers(servers, filters)).toHaveLength(100);
  expect(await passingServers(servers, { matches: null })).toBe(servers);
});
