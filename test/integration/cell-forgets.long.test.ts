import type { Pool } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { PostgresQuarantine } from "../../adapters/postgres/cell/postgres-quarantine.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { checkCopies } from "../../core/audit/check-copies.ts";
import { FakeMemory } from "../../services/compute-agent/fake-memory.ts";
import { conductorId, serverId } from "../contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";
import { type KeptTables, keepTables } from "../rigs/kept-tables.ts";
import { OperationByHand } from "../rigs/operation-by-hand.ts";
import { readCellFacts } from "../rigs/read-cell-facts.ts";
import { type AgentProcess, CellOn, type ConductorProcess } from "../rigs/small-cell.ts";

/** The product's own waits, of a second and more, dominate these tests. */
const SPEED = 4;
/** Times that the database measures by its own clock, which no test can advance. */
const DATABASE_TIMES = { leaseMs: 400, untakenMs: 300 };

let database: TestDatabase;
let pool: Pool;
let cell: CellOn<PostgresCellStore>;
let conductor: ConductorProcess;
let agents: AgentProcess[];
let memory: FakeMemory;

beforeEach(async () => {
  memory = new FakeMemory();
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "forgetful cell test" });
  const body = () => ({ store: new PostgresCellStore(pool), ledger: new PostgresLedger(pool) });
  cell = await new CellOn(body, { speed: SPEED }).open();
});
afterEach(async () => {
  await cell.close();
  await pool.end();
  await database.drop();
});

/** Three hosts, with server 1 running on the first. */
async function start(): Promise<void> {
  await startConductor();
  agents = [];
  const before = memory.over.bind(memory);
  for (const host of [0, 1, 2]) agents.push(await cell.startAgent({ id: `agent-${host}`, hosts: [host], before }));
  await cell.hostsUp(3);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await runsOn(0);
}

async function startConductor(): Promise<void> {
  // The agents must be back before a host counts as gone, even on a busy machine.
  conductor = await cell.startConductor(1, {
    ...DATABASE_TIMES,
    auditHostsPerSecond: 20,
    hostGraceMs: 5_000 * SPEED,
  });
}

const runsOn = (host: number) =>
  eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const stands = () => eventually("it to stand", () => cell.runsOn(1).length === 0);

/** Prevents tasks from being taken until the returned function is called. */
function holdTasks(): () => void {
  const calls = ["takeTasks", "sweepTasks", "holdTasks", "commitActive"] as const;
  const gates = calls.map((name) => conductor.gate.hold(name));
  return () => {
    for (const release of gates) release();
  };
}

/** Takes the backup when the operation is stored and no conductor has taken it yet. */
async function backUpAtBegin(
  requested: Parameters<typeof cell.operate>[0],
): Promise<{ id: string; backup: KeptTables }> {
  const release = holdTasks();
  const id = await cell.operate(requested);
  const backup = await keepTables(database.url);
  release();
  return { id, backup };
}

/** Restores as docs/operating.md describes. `also` makes changes that the backup contains beyond the stored moment. */
async function restore(backup: KeptTables, also: () => Promise<unknown> = async () => {}): Promise<void> {
  await conductor.kill();
  await backup.restore();
  await also();
  await new PostgresQuarantine(pool).renewIncarnation();
  await startConductor();
}

/** Violations of the sixth law, by the database and the drivers' guests. */
async function lostCopies() {
  const facts = await readCellFacts("cell-1", database.url);
  const copies = new Map(["host-0", "host-1", "host-2"].map((host) => [host, cell.copies().get(host) ?? []]));
  return checkCopies({ ...facts, copies });
}

describe("a live migration that had ended when the database was restored to its middle", () => {
  async function migrated(): Promise<{ id: string; backup: KeptTables }> {
    await start();
    const begun = await backUpAtBegin({ server: 1, kind: "live-migrate", hosts: [1, 2] });
    await cell.rest(1);
    await runsOn(1);
    expect(cell.existsOn(1)).toEqual(["host-1"]);
    return begun;
  }
  const handingOver = (id: string) => async () => {
    await new OperationByHand(cell.store, id).goOn("handing-over");
    await cell.store.giveUpLease(conductorId(0));
  };

  test.each(["preparing", "handing-over"] as const)("at `%s` ends again where the server is", async (stage) => {
    const { id, backup } = await migrated();
    await restore(backup, stage === "preparing" ? undefined : handingOver(id));
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1", fault: null });
    expect([cell.runsOn(1), cell.existsOn(1)]).toEqual([["host-1"], ["host-1"]]);
    expect([await cell.holds(serverId(1)), await cell.holds(id)]).toEqual([{ "host-1": 1 }, {}]);
    expect(await lostCopies()).toEqual([]);
  });

  test("ends again where a server is that has obeyed later orders there", async () => {
    const { id, backup } = await migrated();
    for (const kind of ["stop", "start", "reboot"] as const) {
      await cell.operate({ server: 1, kind });
      await cell.rest(1);
    }
    await restore(backup, handingOver(id));
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-1", fault: null });
    expect([cell.runsOn(1), cell.existsOn(1)]).toEqual([["host-1"], ["host-1"]]);
    expect(await lostCopies()).toEqual([]);
  });

  test("ends in ERROR with the reason, and keeps the copy, if the server was shut off since then", async () => {
    const { id, backup } = await migrated();
    await cell.operate({ server: 1, kind: "stop" });
    await cell.become(1, "SHUTOFF");
    await stands();
    await restore(backup, handingOver(id));
    const { fault } = await cell.become(1, "ERROR");
    expect(fault?.message).toMatch(
      /database has lost commits: the guest on host-1 has obeyed order 6 .*`berth cell quarantine`/,
    );
    await eventually("all hosts to be compared again", () => comparedTwice());
    expect(cell.existsOn(1)).toEqual(["host-1"]);
    expect(await lostCopies()).toEqual([]);
    await cell.delete(1);
    await eventually("the delete to remove it", () => cell.existsOn(1).length === 0);
  });

  test("keeps the copy in quarantine while its host is away, and when it comes back", async () => {
    const { backup } = await migrated();
    agents[1]?.cutOff();
    await restore(backup);
    expect(await cell.rest(1)).toMatchObject({ status: "ERROR" });
    agents[1]?.reconnect();
    await eventually("the guest to be in quarantine", async () => (await cellQuarantine()).join() === "host-1");
    expect(cell.runsOn(1)).toEqual(["host-1"]);
  });
});

describe("a resize that was reverted before the database was restored", () => {
  test("to the beginning of the revert is reverted again, and its source continues to run", async () => {
    await start();
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 3 });
    await cell.become(1, "VERIFY_RESIZE");
    const { backup } = await backUpAtBegin({ server: 1, kind: "revert" });
    await cell.become(1, "ACTIVE");
    await runsOn(0);
    await restore(backup);
    expect(await cell.become(1, "ACTIVE")).toMatchObject({ host: "host-0", fault: null });
    await runsOn(0);
    expect([cell.existsOn(1), await cell.holds(serverId(1))]).toEqual([["host-0"], { "host-0": 1 }]);
    expect(await lostCopies()).toEqual([]);
  });

  test("to the beginning of the resize stays at the source", async () => {
    await start();
    const { backup } = await backUpAtBegin({ server: 1, kind: "resize", hosts: [1], vcpus: 3 });
    await cell.become(1, "VERIFY_RESIZE");
    await cell.operate({ server: 1, kind: "revert" });
    await cell.become(1, "ACTIVE");
    await runsOn(0);
    await restore(backup);
    expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
    await runsOn(0);
    expect([cell.existsOn(1), await cell.holds(serverId(1))]).toEqual([["host-0"], { "host-0": 1 }]);
    expect(await lostCopies()).toEqual([]);
  });
});

describe("a server that was moved after the backup", () => {
  test("does not run twice: the stopped guest at its old home stays stopped, and an operator decides", async () => {
    await start();
    const backup = await keepTables(database.url);
    await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 3 });
    await cell.become(1, "VERIFY_RESIZE");
    await runsOn(1);
    const drivers = cell.runsOn(1);
    expect([drivers, cell.existsOn(1).sort()]).toEqual([["host-1"], ["host-0", "host-1"]]);
    await restore(backup);
    const { fault } = await cell.become(1, "ERROR");
    expect(fault?.message).toMatch(/the guest on host-0 is stopped by order \d+, .* may run elsewhere/);
    await eventually("the new guest to be in quarantine", async () => (await cellQuarantine()).join() === "host-1");
    await eventually("all hosts to be compared again", () => comparedTwice());
    expect(cell.runsOn(1)).toEqual(["host-1"]);
    expect(await cell.server(1)).toMatchObject({ status: "ERROR", host: "host-0" });
    // The operator gives up the new guest, and has the old one started.
    await new PostgresQuarantine(pool).condemn([serverId(1)]);
    await eventually("the new guest to go", () => cell.existsOn(1).join() === "host-0");
    expect(await cell.store.resetStatus([{ serverUuid: serverId(1), status: "ACTIVE" }])).toMatchObject([
      { kind: "reset" },
    ]);
    await runsOn(0);
    expect(await lostCopies()).toEqual([]);
  });
});

describe("a server that was built before the database was restored to the middle of its build", () => {
  async function built(): Promise<KeptTables> {
    await start();
    const release = holdTasks();
    await cell.boot(2, [0, 1]);
    const backup = await keepTables(database.url);
    release();
    await cell.become(2, "ACTIVE");
    await eventually("it to run", () => cell.runsOn(2).join() === "host-0");
    return backup;
  }

  test("ends in ERROR, and is not started, if it was shut off since then: it could also have been moved", async () => {
    const backup = await built();
    await cell.operate({ server: 2, kind: "stop" });
    await cell.become(2, "SHUTOFF");
    await restore(backup);
    const { fault } = await cell.become(2, "ERROR");
    expect(fault?.message).toMatch(/the guest on host-0 is stopped by order \d+, .* may run elsewhere/);
    expect([cell.runsOn(2), cell.existsOn(2)]).toEqual([[], ["host-0"]]);
    expect(await cell.store.resetStatus([{ serverUuid: serverId(2), status: "ACTIVE" }])).toMatchObject([
      { kind: "reset" },
    ]);
    await eventually("it to run", () => cell.runsOn(2).join() === "host-0");
  });

  test("is not destroyed where it runs when the build has gone to another host meanwhile", async () => {
    const backup = await built();
    agents[0]?.cutOff();
    await restore(backup);
    expect(await cell.become(2, "ACTIVE")).toMatchObject({ host: "host-1" });
    agents[0]?.reconnect();
    await eventually("the guest to be in quarantine", async () => (await cellQuarantine()).join() === "host-0");
    expect(cell.existsOn(2).sort()).toEqual(["host-0", "host-1"]);
  });
});

const cellQuarantine = async () => (await new PostgresQuarantine(pool).quarantined()).map(({ host }) => host);

let lists = 0;
/**
 * Each comparison of a host begins with its record, when the comparison before has ended. After nine of them on three hosts, each host was
 * compared at least once since then.
 */
function comparedTwice(): boolean {
  if (lists === 0) {
    const read = cell.store.hostRecords.bind(cell.store);
    cell.store.hostRecords = (hosts) => {
      lists += hosts.length;
      return read(hosts);
    };
  }
  return lists > 9;
}
