import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

/** The number of hosts, of which each agent carries ten. */
async function startAgents(hosts: number): Promise<AgentProcess[]> {
  const agents: AgentProcess[] = [];
  for (let first = 0; first < hosts; first += 10) {
    const own = Array.from({ length: 10 }, (_, at) => first + at);
    agents.push(await cell.startAgent({ id: `agent-${first}`, hosts: own, conductors: [1, 2] }));
  }
  await cell.hostsUp(hosts);
  return agents;
}

const upCount = async () => (await cell.store.hosts()).filter(({ up }) => up).length;

test("two hundred hosts that reconnect late to a restarted conductor all stay up", async () => {
  const settings = { unseenMs: 300, heartbeatMs: 500, downShareMax: 1 };
  const first = await cell.startConductor(1, settings);
  const agents = await startAgents(200);
  for (const agent of agents) agent.cutOff();
  await first.kill();
  await eventually("all to be unseen for longer than a host may be", async () => {
    const seen = await cell.store.sightings((await cell.store.hosts()).map(({ name }) => name));
    return seen.every(({ seenAgoMs }) => seenAgoMs > 2 * settings.unseenMs);
  });
  let fewest = Number.POSITIVE_INFINITY;
  const expired: string[] = [];
  const expire = cell.store.expireAgents.bind(cell.store);
  let looks = 0;
  const watch = cell.store.agentsSeen.bind(cell.store);
  cell.store.agentsSeen = (...asked) => {
    looks += 1;
    return watch(...asked);
  };
  cell.store.expireAgents = async (...asked) => {
    const expiry = await expire(...asked);
    expired.push(...expiry.down);
    return expiry;
  };
  await cell.startConductor(2, settings);
  // The conductor has checked its agents for a while before the first of them dials.
  await new Promise((resolve) => setTimeout(resolve, settings.heartbeatMs));
  for (const agent of agents) agent.reconnect();
  await eventually("the conductor to look for silent agents, several times", async () => {
    fewest = Math.min(fewest, await upCount());
    return looks > 5;
  });
  expect([fewest, expired]).toEqual([200, []]);
});

test("when a cell falls silent at once, only a share of its hosts goes down; a delete on another host waits, and ends when that host is forced down", async () => {
  await cell.startConductor(1, { unseenMs: 300, heartbeatMs: 100, downShareMax: 0.25, downCountMin: 1 });
  const agents = await startAgents(40);
  await cell.boot(1, [39]);
  await cell.become(1, "ACTIVE");
  for (const agent of agents) agent.cutOff();
  await eventually("a quarter to be down", async () => (await upCount()) === 30);
  await cell.delete(1);
  const held = (await cell.store.hosts()).find(({ name }) => name === "host-39");
  expect(held?.up).toBe(true);
  await eventually("the delete to wait", async () => (await cell.server(1)).taskState === "deleting");
  expect(await upCount()).toBe(30);
  await cell.store.hostAdmin().setForcedDown("host-39", true);
  await cell.become(1, "DELETED");
});
