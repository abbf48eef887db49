import { afterEach, expect, test } from "vitest";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { hostName, serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const cells: SmallCell[] = [];
afterEach(async () => {
  await Promise.all(cells.splice(0).map((cell) => cell.close()));
});

async function openCell(): Promise<SmallCell> {
  // Guests are compared each second of the cell's clock.
  const cell = await new SmallCell({ speed: 4 }).open();
  cells.push(cell);
  return cell;
}

const SERVERS = Array.from({ length: 8 }, (_, index) => index + 1);

/** The disk of an agent that runs these servers on host 0, in a cell whose database is then lost. */
async function diskWithGuests(): Promise<MemoryDisk> {
  const disk: MemoryDisk = { records: [] };
  const before = await openCell();
  await before.startConductor(1);
  const { agent } = await before.startAgent({ id: "agent-0", hosts: [0], disk });
  await before.hostsUp(1);
  for (const server of SERVERS) await before.boot(server, [0]);
  for (const server of SERVERS) await before.become(server, "ACTIVE");
  await eventually("all to run", () => SERVERS.every((server) => before.runsOn(server).length === 1));
  await eventually("the agent to know the database", () => disk.records.some(({ kind }) => kind === "compared"));
  await agent.close();
  return disk;
}

/** Connects the agent to a database that knows none of its servers. */
async function meetEmptyDatabase(
  disk: MemoryDisk,
  { restored = false, ...settings }: Partial<ConductorSettings> & { readonly restored?: boolean },
): Promise<SmallCell> {
  const after = await openCell();
  if (restored) await after.store.quarantine.renewIncarnation();
  await after.startConductor(1, { auditHostsPerSecond: 20, ...settings });
  await after.startAgent({ id: "agent-0", hosts: [0], disk });
  return after;
}

const runningIn = (cell: SmallCell) => SERVERS.filter((server) => cell.runsOn(server).length === 1);

test("guests that a restored database does not know continue to run in quarantine, until an operator has one destroyed", async () => {
  const disk = await diskWithGuests();
  const cell = await meetEmptyDatabase(disk, { restored: true });
  await cell.hostsUp(1);
  const kept = await cell.store.quarantine.quarantined();
  expect(kept.map(({ host, state, condemned }) => [host, state, condemned])).toEqual(
    SERVERS.map(() => [hostName(0), "running", false]),
  );
  expect(runningIn(cell)).toEqual(SERVERS);
  await eventually("the host to take no new servers", async () => (await cell.store.hosts())[0]?.disabled === true);
  // The agent knows the new database by now and reconnects to it. The guests are still kept.
  await eventually("the agent to know the new database", () =>
    disk.records.some((record) => record.kind === "compared" && record.incarnation === "memory/1"),
  );
  await cell.store.quarantine.condemn([serverId(3)]);
  await eventually("the condemned guest to go", () => cell.existsOn(3).length === 0);
  await eventually("it to be forgotten", async () => (await cell.store.quarantine.quarantined()).length === 7);
  expect(runningIn(cell)).toEqual(SERVERS.filter((server) => server !== 3));
});

test("only a limited number of unknown servers' guests is destroyed in a minute, and the others continue to run", async () => {
  const disk = await diskWithGuests();
  const cell = await meetEmptyDatabase(disk, { unknownDestroysPerMinute: 3 });
  await cell.hostsUp(1);
  await eventually("as many to go as may", () => runningIn(cell).length === 5);
  const judge = cell.store.judgeGuests.bind(cell.store);
  let judged = 0;
  cell.store.judgeGuests = (guests) => {
    judged += 1;
    return judge(guests);
  };
  await eventually("more comparisons", () => judged > 3);
  expect(runningIn(cell)).toHaveLength(5);
});

test.each([
  ["stop", "SHUTOFF", "ACTIVE"],
  ["start", "ACTIVE", "SHUTOFF"],
] as const)(
  "a guest that has obeyed a %s which the database has forgotten becomes what its row says again",
  async (forgotten, status, restoredStatus) => {
    const cell = await openCell();
    await cell.startConductor(1, { auditHostsPerSecond: 20 });
    await cell.startAgent({ id: "agent-0", hosts: [0] });
    await cell.hostsUp(1);
    await cell.boot(1, [0]);
    await cell.become(1, "ACTIVE");
    if (forgotten === "start") {
      await cell.operate({ server: 1, kind: "stop" });
      await cell.become(1, "SHUTOFF");
    }
    const before = await cell.server(1);
    await cell.operate({ server: 1, kind: forgotten });
    await cell.become(1, status);
    expect(cell.runsOn(1)).toHaveLength(status === "ACTIVE" ? 1 : 0);

    const row = { status: restoredStatus, revision: before.revision };
    const [homes, raise] = [cell.store.homes.bind(cell.store), cell.store.raiseRevisions.bind(cell.store)];
    cell.store.homes = async (uuids) => (await homes(uuids)).map((home) => ({ ...home, ...row }));
    cell.store.raiseRevisions = async (revisions) => {
      for (const { revision } of revisions) row.revision = Math.max(row.revision, revision);
      return raise(revisions);
    };
    await eventually("it to be as its row says", () => (cell.runsOn(1).length === 1) === (restoredStatus === "ACTIVE"));
  },
);

test("a guest obeys its server's next order although it was given later ones in vain, which the database has forgotten", async () => {
  const cell = await openCell();
  const first = await cell.startConductor(1, { auditHostsPerSecond: 20 });
  await cell.startAgent({ id: "agent-0", hosts: [0], conductors: [1, 2], fake: { power_failures: 3 } });
  await cell.hostsUp(1);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  const putBack = cell.store.remember();
  for (let order = 1; order <= 3; order += 1) {
    await cell.operate({ server: 1, kind: "pause" });
    expect((await cell.rest(1)).status).toBe("ACTIVE");
  }
  const { revision: forgotten } = await cell.server(1);
  await first.kill();
  putBack();
  await cell.store.quarantine.renewIncarnation();
  await cell.startConductor(2, { auditHostsPerSecond: 20 });
  await eventually("the row to be raised", async () => (await cell.server(1)).revision >= forgotten - 1);
  await cell.operate({ server: 1, kind: "pause" });
  expect((await cell.rest(1)).status).toBe("PAUSED");
});
