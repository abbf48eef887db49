import {
  checkHistory,
  failingBuilds,
  generateHosts,
  type HistoryLine,
  InProcessCloud,
  runSuite,
  together,
} from "berth/chaos";
import { expectSound, useCloud } from "berth/chaos/vitest";
import { expect, test } from "vitest";
import { fewAttempts } from "./few-attempts.ts";
import { pairs } from "./pairs.ts";
import { rollingMaintenance } from "./rolling-maintenance.ts";

/** Long enough for a busy machine. */
const PATIENCE_MS = 120_000;
const PAIRS = 12;
/** As many hosts are tried as in Nova, unless operators set `max_attempts`. */
const ATTEMPTS_MAX = 3;

const CELLS = ["cell-1", "cell-2"].map((name) => ({ name, hosts: generateHosts(`${name}-host`, 4) }));
const HOSTS = CELLS.flatMap(({ hosts }) => hosts.map(({ name }) => name));

const cloud = useCloud(() => InProcessCloud.start({ cells: CELLS }));

/** Makes a server group whose servers must run on different hosts, and resolves with its id. */
async function makeGroup(name: string): Promise<string> {
  const { status, json } = await cloud().call("POST", "/v2.1/os-server-groups", {
    server_group: { name, policy: "anti-affinity" },
  });
  if (status !== 200) throw new Error(`${name}: ${status} ${JSON.stringify(json)}`);
  return (json as { readonly server_group: { readonly id: string } }).server_group.id;
}

test(
  "the servers of a pair stay apart while hosts are maintained and builds fail",
  async () => {
    const groups = await Promise.all(Array.from({ length: PAIRS }, (_, index) => makeGroup(`pair-${index + 1}`)));
    const result = await runSuite({
      name: "pairs",
      cloud: cloud(),
      generator: pairs(groups, { duration_ms: 200 }),
      clients: 4,
      nemesis: together(failingBuilds(0.3), rollingMaintenance(HOSTS, 50)),
      checkers: [fewAttempts(ATTEMPTS_MAX)],
    });

    expectSound(result);
    for (const group of groups) {
      const hosts = result.servers.flatMap(({ wanted, host }) =>
        wanted.hints?.["group"] === group ? (host ?? []) : [],
      );
      expect(new Set(hosts).size).toBe(hosts.length);
    }
    expect(result.servers.filter(({ state }) => state === "ACTIVE").length).toBeGreaterThan(PAIRS);
    const maintained = result.history.filter((line) => line.what === "fault-begins" && line.fault === "own");
    expect(maintained.length).toBeGreaterThan(0);
  },
  PATIENCE_MS,
);

test("the own checker finds a server that was built too often, and does not judge a history without servers", () => {
  const seen = (attempts: number): HistoryLine => ({
    ...{ atMs: 1, who: "client-1", what: "state", server: "a", state: "ACTIVE", ms: 1 },
    attempts,
  });
  const kindOf = (...history: readonly HistoryLine[]) => checkHistory(history, [fewAttempts(3)])[0]?.outcome.kind;
  expect(kindOf(seen(3))).toBe("holds");
  expect(kindOf(seen(3), seen(4))).toBe("broken");
  expect(kindOf()).toBe("unknown");
});
