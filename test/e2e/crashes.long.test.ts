import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cellTasksConsumer } from "../../adapters/nats/streams.ts";
import type { LocalAgent } from "../../chaos/local/local-agent.ts";
import type { LocalConductor } from "../../chaos/local/local-conductor.ts";
import { eventually } from "../rigs/eventually.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";
import { RunWatch } from "./run-watch.ts";
import { streamState } from "./stream-state.ts";

const PATIENT = { everyMs: 20, withinMs: 60_000 };
/** Long enough that builds are running when a process dies. No test waits for this time to pass. */
/** Long enough that a busy machine sees its builds before they end. */
const BUILD = { duration_ms: 5_000 };

describe("when any process dies at any moment", () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let flavor: string;
  let watch: RunWatch;

  beforeAll(async () => {
    const conductorEnv = { BERTH_LEASE: "3s", BERTH_HOST_GRACE: "2s", BERTH_AGENT_UNSEEN: "3s" };
    // An agent has fewer hosts than a build has selections, so every build has a way out when one agent is dead.
    cloud = await Cloud.start({ cells: ["cell-1"], conductorEnv, hostsPerAgent: 2 });
    cell = cloud.cell("cell-1");
    flavor = await cloud.compute.flavor({ [`trait:${cell.trait}`]: "required" });
  });
  afterAll(() => cloud?.close());
  beforeEach(async () => {
    await cloud.beforeTest();
    watch = new RunWatch(cloud);
  });

  /** Each server has ended, has its allocation only where it runs, and never ran in two places. */
  async function expectEndedOnOneHost(uuids: readonly string[]) {
    const servers = await cloud.compute.ended(uuids);
    await cloud.makeWhole();
    await cloud.expectCleanAudit();
    expect(await watch.stop()).toEqual([]);
    const homes = servers.map((server) => (server.status === "ACTIVE" ? [server["OS-EXT-SRV-ATTR:host"]] : []));
    expect(await Promise.all(uuids.map((uuid) => cell.holders(uuid)))).toEqual(homes);
    return servers;
  }

  const ownedBy = async (conductor: LocalConductor) =>
    (await cell.openTasks()).filter(({ owner }) => owner === conductor.name);

  /** The first conductor that owns tasks. */
  const busyConductor = () =>
    eventually(
      "a conductor to build",
      async () => {
        const open = await cell.openTasks();
        return cell.conductors.find(({ name }) => open.some(({ owner }) => owner === name));
      },
      PATIENT,
    );

  /** How many attempts are running on this agent's hosts. */
  const buildingOn = async (agent: LocalAgent) => {
    const open = "select from attempts where host = any($1) and ended_at is null";
    return (await cell.query(open, [agent.hosts])).length;
  };

  test("a conductor is killed mid-build: another one continues its builds", async () => {
    const booting = cloud.compute.bootMany(16, { flavor, fake: BUILD });
    const conductor = await busyConductor();
    await conductor.kill();
    const left = await ownedBy(conductor);
    expect(left.length).toBeGreaterThan(0);
    const uuids = await booting;
    const servers = await expectEndedOnOneHost(uuids);
    expect(servers.map((server) => server.status)).toEqual(uuids.map(() => "ACTIVE"));
    const after = await cell.query<{ id: string; epoch: number }>("select id, epoch from tasks where id = any($1)", [
      left.map((task) => task.id),
    ]);
    const epochs = new Map(after.map(({ id, epoch }) => [id, epoch]));
    expect(left.filter(({ id, epoch }) => (epochs.get(id) ?? 0) <= epoch)).toEqual([]);
  });

  test("a conductor that was paused and replaced changes nothing when it resumes", async () => {
    const booting = cloud.compute.bootMany(16, { flavor, fake: BUILD });
    const conductor = await busyConductor();
    await conductor.pause();
    expect((await ownedBy(conductor)).length).toBeGreaterThan(0);
    const uuids = await booting;
    await cloud.compute.ended(uuids);
    await conductor.resume();
    const servers = await expectEndedOnOneHost(uuids);
    expect(servers.map((server) => server.status)).toEqual(uuids.map(() => "ACTIVE"));
  });

  test("all schedulers are killed between claim and publish: the cell builds the claimed servers", async () => {
    const { lastSequence } = await streamState(cell.nats.cellApiUrl(cell.name), cellTasksConsumer.stream);
    // Without NATS no scheduler can publish, and the claim needs only the database.
    await cell.nats.kill();
    const uuid = await cloud.compute.boot({ flavor });
    await eventually("the claim", async () => (await cell.holders(uuid)).length === 1, PATIENT);
    await Promise.all(cloud.schedulers.map((scheduler) => scheduler.kill()));
    await cell.nats.restart();
    const server = await cloud.compute.endedOne(uuid);
    expect(server.status).toBe("ACTIVE");
    expect((await streamState(cell.nats.cellApiUrl(cell.name), cellTasksConsumer.stream)).lastSequence).toBe(
      lastSequence,
    );
    await expectEndedOnOneHost([uuid]);
    expect(await cloud.compute.attempts(uuid)).toHaveLength(1);
  });

  test("one of several schedulers is killed: every request ends", async () => {
    const [scheduler] = cloud.schedulers;
    const before = await cell.tasksGiven("build");
    const booting = cloud.compute.bootMany(120, { flavor });
    await eventually("the first claims", async () => (await cell.tasksGiven("build")) > before, PATIENT);
    await scheduler?.kill();
    const servers = await expectEndedOnOneHost(await booting);
    expect(servers.filter((server) => server.status !== "ACTIVE")).toEqual([]);
  });

  test("agents are killed mid-build, one after the other: their servers go to alternates", async () => {
    const uuids = await cloud.compute.bootMany(16, { flavor, fake: { outcome: "hang", first: 1 } });
    const taken = async () =>
      (await cell.openTasks(uuids)).filter(({ owner }) => owner !== null).length === uuids.length;
    await eventually("all builds to be under way", taken, PATIENT);
    for (const agent of cell.agents) {
      // The scheduler may have avoided an agent whose hosts failed recently.
      if ((await buildingOn(agent)) === 0) continue;
      await agent.kill();
      await eventually("its builds to leave it", async () => (await buildingOn(agent)) === 0, PATIENT);
      await agent.start();
    }
    const servers = await expectEndedOnOneHost(uuids);
    expect(servers.map(({ status }) => status)).toEqual(uuids.map(() => "ACTIVE"));
  });

  test("an agent dies because of its own build: the next process cleans up, and the server runs once", async () => {
    const uuid = await cloud.compute.boot({ flavor, fake: { outcome: "crash", first: 1 } });
    await eventually("an agent's death", () => cell.agents.some((agent) => !agent.running), PATIENT);
    const servers = await expectEndedOnOneHost([uuid]);
    expect(servers.map(({ status }) => status)).toEqual(["ACTIVE"]);
    // The first alternate may have been a host of the same agent.
    const results = (await cloud.compute.attempts(uuid)).map(({ result }) => result);
    expect(results.slice(-2)).toEqual(["Error", "Success"]);
  });

  test("hosts that were paused while their builds went elsewhere run none of them when they resume", async () => {
    const booting = cloud.compute.bootMany(12, { flavor, fake: BUILD });
    const busy = async () => {
      for (const agent of cell.agents) if ((await buildingOn(agent)) > 0) return agent;
      return null;
    };
    const agent = await eventually("an agent to build", busy, PATIENT);
    await agent.pause();
    const uuids = await booting;
    await cloud.compute.ended(uuids);
    await agent.resume();
    const servers = await expectEndedOnOneHost(uuids);
    expect(servers.map(({ status }) => status)).toEqual(uuids.map(() => "ACTIVE"));
  });
});
