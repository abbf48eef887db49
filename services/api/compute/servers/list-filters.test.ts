import { expect, test } from "vitest";
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
