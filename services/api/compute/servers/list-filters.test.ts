import { expect, test } from "vitest";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { readFilters } from "./list-filters.ts";

const ADMIN = { identity: { isAdmin: true, projectId: "p" }, policy: null, minor: 96 } as unknown as KnownCall;
const ZONES = { byHost: new Map(), defaultZone: "nova" } as unknown as Parameters<typeof readFilters>[2];

test.each([
  [{}, []],
  [{ status: "ERROR", config_drive: "true" }, ["states", "tokens"]],
  [{ status: "ERROR", ip: "^10.0.0.7$" }, ["tokens", "states"]],
  [{ status: "ACTIVE", ip6: "fd00" }, ["tokens"]],
  [{ task_state: "spawning", launch_index: "2", host: "h", availability_zone: "edge" }, ["host", "tokens", "states"]],
  [{ status: "SHUTOFF", availability_zone: "edge" }, []],
])("of several filters, the index is asked first that is likely to find the fewest servers: %j", (filters, kinds) => {
  const { sources } = readFilters(new QueryReader(filters as Readonly<Record<string, string>>), ADMIN, ZONES);
  expect(sources.map(({ kind }) => kind)).toEqual(kinds);
});

test.each([
  [{ status: "SHUTOFF" }, [["status", "SHUTOFF"]]],
  [
    { vm_state: "error", flavor: "1" },
    [
      ["flavor", "1"],
      ["status", "ERROR"],
    ],
  ],
  [{ status: "BUILD" }, []],
  [{ status: "ACTIVE" }, []],
  [{ task_state: "spawning", status: "SHUTOFF" }, []],
  [{ availability_zone: "edge" }, [["host", ""]]],
  [{ availability_zone: "nova" }, []],
])("lists in the order of creation have the servers of %j", (filters, expected) => {
  const { indexed } = readFilters(new QueryReader(filters as Readonly<Record<string, string>>), ADMIN, ZONES);
  expect(indexed.map(({ attribute, value }) => [attribute, value])).toEqual(expected);
});

test("all expressions of a list together have one limit of work", () => {
  const query = { name: "(a.{0,120}){2}[yz]$", hostname: "(b.{0,120}){2}[yz]$" };
  const { name, matchers } = readFilters(new QueryReader(query), ADMIN, ZONES);
  const text = (at: number) => `${at.toString(2)}${"abba".repeat(60)}`.replaceAll("0", "a").replaceAll("1", "b");
  const known = (at: number) => ({ server: { spec: { name: "n", hostname: text(at) } } }) as unknown as KnownServer;
  for (const matches of matchers) expect(matches(known(0))).toBe(false);
  let at = 0;
  const useUp = () => {
    for (; at < 10_000; at += 1) name?.matches(text(at));
  };
  expect(useUp).toThrow("query parameters name.");
  expect(() => matchers.map((matches) => Array.from({ length: 100 }, (_, more) => matches(known(at + more))))).toThrow(
    "query parameters hostname.",
  );
});
