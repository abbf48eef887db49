import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openClient } from "../../adapters/postgres/client/databases.ts";
import { eventually } from "../rigs/eventually.ts";
import { Cloud } from "./cloud.ts";
import { SteadyLoad } from "./steady-load.ts";

const PATIENT = { everyMs: 50, withinMs: 90_000 };
const KILLS = Number(process.env.BERTH_TEST_KILLS ?? 100);
/** The time between two kills, in which the processes make progress. */
const KILL_EVERY_MS = 200;
/** How long a table is locked before a kill, so that some transaction waits for it. */
const HELD_MS = 100;
const RESTARTS = 2;
/** The time between two requests for servers: a faster load would mostly keep the CPUs busy while the faults take their time. */
const LOAD_EVERY_MS = 300;
/** How many servers must become ACTIVE before a fault and after it. */
const WARM = 10;

describe("a cloud whose connections are lost", () => {
  let cloud: Cloud;

  beforeAll(async () => {
    // Nothing here passes from one cell to another, and each further cell has a third of the cloud's processes.
    cloud = await Cloud.start({ cells: ["cell-1"] });
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  const pids = () => cloud.services.map((one) => `${one.name}: ${one.running ? one.pid : "ended"}`);

  async function underLoad(faults: () => Promise<void>): Promise<void> {
    const before = pids();
    // Each server's first host fails, because hops are transactions of several statements.
    const fake = { outcome: "reschedule", first: 1 } as const;
    const load = new SteadyLoad(cloud.compute, await cloud.compute.flavor(), { fake, everyMs: LOAD_EVERY_MS });
    await eventually("the load to run", () => load.active >= WARM, PATIENT);
    await faults();
    expect(pids()).toEqual(before);
    const goal = load.accepted + WARM;
    await eventually("servers after the faults", () => load.active >= goal, PATIENT);
    const { accepted } = await load.stop();
    const servers = await cloud.compute.ended(accepted);
    expect(servers.filter(({ status }) => status !== "ACTIVE").map(({ id, fault }) => ({ id, fault }))).toEqual([]);
    expect(pids()).toEqual(before);
    await cloud.expectCleanAudit();
  }

  test(`${KILLS} killed Postgres backends end no process, and every server becomes ACTIVE`, async () => {
    const killers: Killer[] = [];
    onTestFinished(async () => {
      for (const { client } of killers) await client.end();
    });
    for (const url of [cloud.databaseUrl, ...cloud.cells.map((cell) => cell.databaseUrl)]) {
      // On a busy machine a server that all reconnect to may let the test wait longer than one attempt lasts. So the connection is kept.
      const client = await eventually("a connection", () => openClient(url).catch(() => null), PATIENT);
      killers.push({ client, table: url === cloud.databaseUrl ? "requests" : "tasks" });
    }
    const killed = new Map<string, number>();
    await underLoad(async () => {
      for (let kills = 0; kills < KILLS; ) {
        for (const killer of killers) {
          const names = await killOneOfEach(killer);
          kills += names.length;
          for (const name of names) killed.set(name, (killed.get(name) ?? 0) + 1);
        }
        await delay(KILL_EVERY_MS);
      }
    });
    // Every kind of connection was killed: those for statements, those that follow the log, and those for questions.
    expect([...killed.keys()].toSorted()).toEqual(
      expect.arrayContaining(["berth api", "berth scheduler", "berth view", "berth view stream"]),
    );
    expect([...killed.keys()].some((name) => name.startsWith("berth conductor"))).toBe(true);
  });

  test("repeated kills of NATS and Redis servers end no process", async () => {
    await underLoad(async () => {
      for (let restarts = 0; restarts < RESTARTS; restarts += 1) {
        for (const server of [cloud.nats, cloud.cells[0]!.nats, cloud.redis]) {
          await server.kill();
          await server.restart();
        }
        await delay(KILL_EVERY_MS);
      }
    });
  });

  test("repeated kills of Postgres servers end no process", async () => {
    await underLoad(async () => {
      for (let restarts = 0; restarts < RESTARTS; restarts += 1) {
        for (const server of [cloud.database, ...cloud.cells.map((cell) => cell.database)]) {
          await server.kill();
          await server.start();
          await delay(KILL_EVERY_MS);
        }
      }
    });
  });

  test("repeated kills of the other end of the agents' links end no surviving process", async () => {
    const [cell] = cloud.cells;
    const victims = [cell!.conductors[0]!, cell!.agents[0]!];
    const others = () => cloud.services.filter((one) => !victims.some((victim) => victim === one));
    const before = others().map((one) => one.pid);
    const load = new SteadyLoad(cloud.compute, await cloud.compute.flavor(), { everyMs: LOAD_EVERY_MS });
    await eventually("the load to run", () => load.active >= WARM, PATIENT);
    for (let restarts = 0; restarts < RESTARTS; restarts += 1) {
      for (const victim of victims) await victim.replace();
    }
    const { accepted } = await load.stop();
    expect(others().map((one) => (one.running ? one.pid : one.logSinceMark(5)))).toEqual(before);
    const servers = await cloud.compute.ended(accepted);
    expect(servers.filter(({ status }) => status !== "ACTIVE").map(({ id, fault }) => ({ id, fault }))).toEqual([]);
  });

  test("services that are started while their databases are away wait for them, and serve once they are back", async () => {
    const [cell] = cloud.cells;
    const conductor = cell!.conductors[0]!;
    const restarted = [cloud.api, cloud.schedulers[0]!, conductor];
    await Promise.all(restarted.map((one) => one.kill()));
    await Promise.all([cloud.database.kill(), cell!.database.kill()]);
    for (const one of restarted) one.mark();
    const starting = Promise.all(restarted.map((one) => one.start()));
    starting.catch(() => undefined); // A failure is reported below.
    const waiting = (one: (typeof restarted)[number]) => one.logSinceMark(100).includes("connect ECONNREFUSED");
    await eventually("all of them to wait", () => restarted.every(waiting), PATIENT);
    await Promise.all([cloud.database.start(), cell!.database.start()]);
    await starting;
    await underLoad(async () => undefined);
  });
});

/** A connection to a database, and a table in which its services write. */
interface Killer {
  readonly client: Awaited<ReturnType<typeof openClient>>;
  readonly table: string;
}

/**
 * Blocks every transaction that writes to the table, in its middle, and ends one session of each of Berth's programs on this database, preferably one that waits for the
 * lock. Returns their application names.
 */
async function killOneOfEach({ client, table }: Killer): Promise<readonly string[]> {
  await client.query(`begin; lock table ${table} in share mode`);
  try {
    await delay(HELD_MS);
    const { rows } = await client.query<{ name: string }>(
      `select application_name as name, pg_terminate_backend(pid)
       from (select distinct on (application_name) pid, application_name from pg_stat_activity
             where datname = current_database() and application_name like 'berth%' and application_name <> 'berth admin'
             order by application_name, wait_event_type = 'Lock' desc, state = 'idle', random()) one`,
    );
    return rows.map(({ name }) => name);
  } finally {
    await client.query("rollback");
  }
}
