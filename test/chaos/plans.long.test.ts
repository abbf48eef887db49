import { afterAll, beforeAll, expect, onTestFailed, test } from "vitest";
import { LocalTarget } from "../../chaos/local/local-target.ts";
import { parsePlan } from "../../chaos/read-plan.ts";
import { runPlan } from "../../chaos/run-plan.ts";

const SHAPE = { cells: 2, apis: 1, schedulers: 2, conductors: 2, agents: 2, hosts: 2, standbys: true };
const LOAD = "load: { clients: 4, rate: 6, deletes: 0.3, build: 300ms }\nduration: 6s\nexpect: { active: 1 }";
let cloud: LocalTarget;

beforeAll(async () => {
  cloud = await LocalTarget.start(SHAPE);
});
afterAll(() => cloud?.close());

async function outcomeOf(name: string, nemesis: string) {
  const plan = parsePlan(`name: ${name}\nabout: A test.\n${LOAD}\nnemesis:\n${nemesis}`, name);
  const result = await runPlan({ plan, cloud, seed: 1, signal: new AbortController().signal });
  onTestFailed(async () => {
    for (const { part, text } of await cloud.logs()) process.stderr.write(`--- ${part}\n${text}\n`);
  });
  const begun = result.history.filter((line) => line.what === "fault-begins");
  const ended = result.history.filter((line) => line.what === "fault-ends");
  expect(ended.map(({ faultId }) => faultId).sort()).toEqual(begun.map(({ faultId }) => faultId).sort());
  expect(ended.flatMap(({ detail }) => detail ?? [])).toEqual([]);
  expect(result.history[0]).toMatchObject({ what: "start", plan: name, target: "local" });
  expect(result.history.at(-1)).toMatchObject({ what: "end" });
  return { failures: result.failures, faults: new Set(begun.map(({ fault }) => fault)), rounds: result.rounds };
}

test("services die and are paused, hosts fail builds, and a disk is full: everything ends as it should", async () => {
  const { failures, faults, rounds } = await outcomeOf(
    "deaths",
    `- { fault: kill, target: conductor, at: 500ms, every: 2s, for: 1s }
- { fault: kill, target: scheduler, pick: all, at: 2s, for: 1s }
- { fault: kill, target: agent@cell1, at: 1s, for: 1s }
- { fault: pause, target: conductor@cell2, at: 1s, for: 3s }
- { fault: disk-full, target: agent@cell2, at: 3s, for: 2s }
- { fault: disk-full, target: nats, pick: all, at: 2s, for: 3s }`,
  );
  expect(failures).toEqual([]);
  expect(faults).toEqual(new Set(["kill", "pause", "disk-full"]));
  expect(rounds[0]?.accepted).toBeGreaterThan(10);
});

test("a cell is cut off, links are slow, and messages and soft state get lost: everything ends as it should", async () => {
  const { failures, faults } = await outcomeOf(
    "links",
    `- { fault: cut, target: above -> cell1, at: 500ms, for: 3s }
- { fault: slow, target: scheduler -> postgres, delay: 100ms, at: 1s, for: 2s }
- { fault: kill, target: nats, pick: all, at: 4s, for: 1s }
- { fault: redis-flush, at: 0s, for: 4s }
- { fault: cut, target: agent@cell2 -> conductor, way: back, at: 2s, for: 1s }`,
  );
  expect(failures).toEqual([]);
  expect(faults).toEqual(new Set(["cut", "slow", "kill", "redis-flush"]));
});

test("a cloud that was left paused, cut off and full is made whole again", async () => {
  const [cell] = cloud.cells;
  const [nats, agent] = ["nats", "agent"].map((role) =>
    cloud.parts.find((one) => one.role === role && one.cell === cell),
  );
  await Promise.all([nats?.pause(), agent?.pause(), ...cloud.links.map((link) => link.cut("both"))]);
  await Promise.all([agent, nats].map((part) => cloud.fillDisk(part?.name ?? "")));
  await cloud.makeWhole();
  const { failures } = await outcomeOf("nothing", "- { fault: fail-builds, share: 0, at: 1s, for: 1s }");
  expect(failures).toEqual([]);
});

test("a cell's Postgres fails over under load, and nothing that was acknowledged is lost", async () => {
  const { failures, faults } = await outcomeOf(
    "failover",
    "- { fault: failover, target: postgres@cell1, at: 2s, for: 1s }",
  );
  expect(failures).toEqual([]);
  expect(faults).toEqual(new Set(["failover"]));
});
