import { afterEach, beforeEach, expect, test } from "vitest";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

/** A driver whose first starts wait until they are released, even when their signal aborts them. */
class SlowStarts {
  readonly released = Promise.withResolvers<void>();
  begun = 0;
  /** How many starts were aborted. */
  raised = 0;

  before(driver: FakeDriver): Driver {
    return overriding(driver as Driver, {
      start: async (guest, signal) => {
        this.begun += 1;
        signal?.addEventListener("abort", () => {
          this.raised += 1;
        });
        await this.released.promise;
        await driver.start(guest, new AbortController().signal);
      },
    });
  }
}

/** Server 1 is ACTIVE on host-0, whose driver is starting it. */
async function startSlowly(disk: MemoryDisk = { records: [] }): Promise<SlowStarts & { readonly agent: AgentProcess }> {
  const slow = new SlowStarts();
  // A long grace, so that no host is given up, however busy this machine is.
  await cell.startConductor(1, { hostGraceMs: 60_000 });
  const agent = await cell.startAgent({ id: "agent-0", hosts: [0], disk, before: (driver) => slow.before(driver) });
  await cell.startAgent({ id: "agent-1", hosts: [1] });
  await cell.hostsUp(2);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await eventually("the start to begin", () => slow.begun === 1);
  return Object.assign(slow, { agent });
}
/** The operation waits for the start, or ended without waiting. */
const waitsOrEnds = (slow: SlowStarts) =>
  eventually(
    "the operation to meet the start",
    async () => slow.raised > 0 || (await cell.server(1)).taskState === null,
  );

test("a server that is migrated while its guest is being started runs on the destination alone", async () => {
  const slow = await startSlowly();
  await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
  await waitsOrEnds(slow);
  slow.released.resolve();
  await cell.become(1, "VERIFY_RESIZE");
  await eventually("it to run on the destination", () => cell.runsOn(1).includes("host-1"));
  expect(cell.runsOn(1)).toEqual(["host-1"]);
});

test.each([
  ["stopped", "stop", "SHUTOFF"],
  ["shelved", "shelve", "SHELVED"],
] as const)("a server that is %s while its guest is being started does not run", async (_, kind, status) => {
  const slow = await startSlowly();
  await cell.operate({ server: 1, kind });
  await waitsOrEnds(slow);
  slow.released.resolve();
  await cell.become(1, status);
  expect(cell.runsOn(1)).toEqual([]);
});

test("a server that is deleted while its guest is being started leaves nothing", async () => {
  const slow = await startSlowly();
  await cell.delete(1);
  await eventually(
    "the delete to meet the start",
    async () => slow.raised > 0 || (await cell.server(1)).status === "DELETED",
  );
  slow.released.resolve();
  await cell.become(1, "DELETED");
  expect(cell.existsOn(1)).toEqual([]);
});

test.each([
  ["stopped", "stop", "SHUTOFF"],
  ["shelved", "shelve", "SHELVED"],
] as const)(
  "a guest that was started when its agent died, and whose start is in no journal, is %s",
  async (_, kind, status) => {
    const disk: MemoryDisk = { records: [] };
    const { agent } = await startSlowly(disk);
    await agent.agent.close();
    cell.forget(agent.driver);
    expect(disk.records.at(-1)).toMatchObject({ state: "prepared" });
    await cell.operate({ server: 1, kind });
    await cell.startAgent({
      id: "agent-0",
      hosts: [0],
      disk,
      // The hypervisor has continued meanwhile.
      before: (driver) =>
        overriding(driver as Driver, {
          adopt: async (guests) => {
            await driver.adopt(guests);
            for (const guest of guests) await driver.start(guest, new AbortController().signal);
          },
        }),
    });
    await cell.become(1, status);
    expect(cell.runsOn(1)).toEqual([]);
  },
);

test("a guest that runs although its server is shut off is stopped when it is found", async () => {
  await cell.startConductor(1);
  const { driver } = await cell.startAgent({ id: "agent-0", hosts: [0] });
  await cell.hostsUp(1);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  const [guest] = driver.guests();
  if (guest === undefined) throw new Error("no guest");
  await driver.start(guest, new AbortController().signal);
  await eventually("it to stand again", () => cell.runsOn(1).length === 0);
});

test("a source that runs again after the hand-over is stopped again, and is kept for the way back", async () => {
  await cell.startConductor(1);
  const { driver } = await cell.startAgent({ id: "agent-0", hosts: [0] });
  await cell.startAgent({ id: "agent-1", hosts: [1] });
  await cell.hostsUp(2);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
  await cell.become(1, "VERIFY_RESIZE");
  const [source] = driver.guests();
  if (source === undefined) throw new Error("no guest");
  await driver.start(source, new AbortController().signal);
  await eventually("the source to stand again", () => cell.runsOn(1).join() === "host-1");
  expect(cell.existsOn(1).sort()).toEqual(["host-0", "host-1"]);
  await cell.operate({ server: 1, kind: "revert" });
  await cell.become(1, "ACTIVE");
  await eventually("it to run at the source", () => cell.runsOn(1).join() === "host-0");
});
