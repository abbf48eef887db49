import { afterEach, beforeEach, expect, test } from "vitest";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

const SPEED = 5;
const UNSEEN_MS = 500 * SPEED;
let cell: SmallCell;
let starts: string[];
beforeEach(async () => {
  cell = await new SmallCell({ speed: SPEED }).open();
  starts = [];
});
afterEach(() => cell.close());

/** Starts the agent of a host that loses its power with it. The driver notes on which hosts guests were started. */
function startAgent(host: number, disk: MemoryDisk): Promise<AgentProcess> {
  const note = (at: string) => void starts.push(at);
  return cell.startAgent({
    ...{ id: `agent-${host}`, hosts: [host], vcpus: 4, conductors: [1, 2], fake: { loses_power: true }, disk },
    before: (driver) =>
      overriding(driver as Driver, {
        start: (guest, ...more) => {
          note(guest.host);
          return driver.start(guest, ...more);
        },
        power: (guest, verb, ...more) => {
          if (verb === "start") note(guest.host);
          return driver.power(guest, verb, ...more);
        },
      }),
  });
}

async function lose({ agent, driver }: AgentProcess): Promise<void> {
  await agent.close();
  cell.forget(driver);
}

/** What the first conductor asks the database before it leaves a silent host to others, and what keeps its tasks. */
const LEAVING: readonly ((keyof CellStore & "renewLease") | "sightings" | "releaseTasks")[] = [
  "renewLease",
  "sightings",
  "releaseTasks",
];

test("a conductor that has lost a resize does not start its guest on a host that was fenced and comes back", async () => {
  const first = await cell.startConductor(1, { unseenMs: UNSEEN_MS });
  const disk: MemoryDisk = { records: [] };
  await startAgent(0, { records: [] });
  const destination = await startAgent(1, disk);
  await cell.hostsUp(2);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  // The destination dies just before it is told to start its guest.
  const letPrepare = first.gate.hold("commitStep");
  const resize = await cell.operate({ server: 1, kind: "resize", hosts: [1], vcpus: 2 });
  const stage = async () => (await cell.store.positions([resize]))[0]?.stage;
  await eventually("the guest to be prepared", () => first.gate.held("commitStep") === 1);
  letPrepare();
  let letStart = first.gate.hold("commitStep");
  await eventually("the hand-over", async () => {
    if (first.gate.held("commitStep") < 2) return false;
    if ((await stage()) === "handing-over") return true;
    letStart();
    letStart = first.gate.hold("commitStep");
    return false;
  });
  await lose(destination);
  for (const call of LEAVING) first.gate.hold(call);
  letStart();
  await eventually("the switch", async () => (await stage()) === "starting");
  const before = starts.length;

  // A resize ends on a host that is silent for long and not fenced, since the guest may run there, so the host is fenced before any conductor can find it so.
  await cell.store.hostAdmin().setForcedDown("host-1", true);
  await cell.startConductor(2, { unseenMs: UNSEEN_MS });
  await eventually("host-1 to be down", async () => (await cell.store.hosts()).some((host) => !host.up));
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
  await eventually("the server to run at the source", () => cell.runsOn(1).join() === "host-0");

  await cell.store.hostAdmin().setForcedDown("host-1", false);
  await startAgent(1, disk);
  await eventually("the remains to be gone", () => cell.existsOn(1).join() === "host-0");
  expect(starts.slice(before)).toEqual(["host-0"]);
  expect(cell.runsOn(1)).toEqual(["host-0"]);
});

test("a build that was recorded while its host died leaves the start to the row, since the server may have moved meanwhile", async () => {
  const first = await cell.startConductor(1, { unseenMs: UNSEEN_MS });
  const disk: MemoryDisk = { records: [] };
  const home = await startAgent(0, disk);
  await startAgent(1, { records: [] });
  await cell.hostsUp(2);
  // The database has recorded that the server is ACTIVE on host-0, and its answer is late.
  const answered = Promise.withResolvers<void>();
  first.gate.change("commitActive", (answer) => answered.promise.then(() => answer));
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await lose(home);
  await eventually("host-0 to be down", async () => (await cell.store.hosts()).some((host) => !host.up));
  await cell.store.hostAdmin().setForcedDown("host-0", true);
  await cell.operate({ server: 1, kind: "evacuate", hosts: [1], unseenMs: UNSEEN_MS });
  await eventually("the evacuation", () => cell.runsOn(1).join() === "host-1");
  await cell.rest(1);
  // The comparison of host-0 has to wait, too, and the answer overtakes it.
  const letCompare = first.gate.hold("hostRecords");
  // A comparison may have started the guest on host-0 before that host was lost, when the row was right.
  starts.length = 0;
  await cell.store.hostAdmin().setForcedDown("host-0", false);
  await startAgent(0, disk);
  await eventually("the comparison to begin", () => first.gate.held("hostRecords") > 0);
  answered.resolve();
  letCompare();
  await eventually("the remains to be gone", () => cell.existsOn(1).join() === "host-1");
  expect(starts).not.toContain("host-0");
});
