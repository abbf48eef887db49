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
  [
    { task_state: "spawning", launch_index: "2", host: "h", availability_zone: "edge" },
    ["host", "tokens", "states", "zone"],
  ],
])("of several filters, the index is asked first that is likely to find the fewest servers: %j", (filters, kinds) => {
  const { sources } = readFilters(new QueryReader(filters as Readonly<Record<string, string>>), ADMIN, ZONES);
  expect(sources.map(({ kind }) => kind)).toEqual(kinds);
});
