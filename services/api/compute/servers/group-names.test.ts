import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";
import { readGroupNames } from "./group-names.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/**
 * Returns the groups that the first of `count` servers is shown with if they take `afterMs` to be read, and hangs if it is not shown after `withinMs`.
 * The clock goes no further, since timers of earlier files, which this process has run, may be due each of its milliseconds.
 */
async function shown(isOwn: boolean, count: number, afterMs: number, withinMs: number): Promise<readonly string[]> {
  const ofServers = async () => {
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    return new Map([["0", [{ id: "g", name: "web" }]]]);
  };
  const securityGroups = { isOwn, ofServers } as unknown as SecurityGroupDesk;
  const servers = Array.from({ length: count }, (_, index) => ({ server: { uuid: String(index), spec: {} } }));
  const names = readGroupNames({ securityGroups }, {} as KnownCall, servers as unknown as readonly KnownServer[]);
  await vi.advanceTimersByTimeAsync(withinMs);
  return (await names).of("0");
}

test("servers are shown without the groups of a silent Neutron, but long lists wait longer", async () => {
  expect(await shown(false, 1, 1_500, 2_000)).toEqual(["web"]);
  expect(await shown(false, 1, 5_000, 3_000)).toEqual([]);
  expect(await shown(false, 1_000, 5_000, 6_000)).toEqual(["web"]);
  expect(await shown(false, 1_000, 50_000, 13_000)).toEqual([]);
});

test("the groups of Berth's own network are always waited for", async () => {
  expect(await shown(true, 1, 5_000, 6_000)).toEqual(["web"]);
});
