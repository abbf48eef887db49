import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EventKind } from "../../proto/gen/berth/cell.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { hostTree } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

const freshDisk = (): MemoryDisk => ({ records: [] });

describe("a delete", () => {
  test("of an ACTIVE server removes it from its host and releases its allocation", async () => {
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1] });
    await cell.hostsUp(1);
    await cell.boot(1, [1]);
    await cell.become(1, "ACTIVE");
    await cell.delete(1);
    await cell.become(1, "DELETED");
    expect([cell.existsOn(1), await cell.heldOn(1)]).toEqual([[], []]);
    await eventually("the event", () =>
      cell.events.some((event) => event.kind === EventKind.EVENT_KIND_SERVER_DELETED),
    );
  });

  test("before a conductor has taken the build", async () => {
    await cell.ledger.putTrees([hostTree(1, 8)]);
    await cell.boot(1, [1]);
    await cell.delete(1);
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1] });
    await cell.become(1, "DELETED");
    expect([cell.existsOn(1), await cell.heldOn(1)]).toEqual([[], []]);
  });

  test("while the host builds: the build ends at once", async () => {
    const { conductor } = await cell.startConductor(1);
    const { agent } = await cell.startAgent({ id: "agent-1", hosts: [1, 2] });
    await cell.hostsUp(2);
    await cell.boot(1, [1, 2], { fake: { outcome: "hang" } });
    await eventually("the build to begin", () => agent.guests().length === 1);
    await cell.delete(1);
    await cell.become(1, "DELETED");
    await eventually("all tasks to end", () => conductor.taskCount === 0);
    expect([cell.existsOn(1), agent.guests(), await cell.heldOn(1)]).toEqual([[], [], []]);
  });

  test("while ACTIVE is being committed", async () => {
    const { gate, conductor } = await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1] });
    await cell.hostsUp(1);
    const release = gate.hold("commitActive");
    await cell.boot(1, [1]);
    await eventually("the commit", () => gate.held("commitActive") > 0);
    await cell.delete(1);
    await cell.become(1, "DELETED");
    release();
    await eventually("all tasks to end", () => conductor.taskCount === 0);
    expect([await cell.server(1), cell.existsOn(1)]).toMatchObject([{ status: "DELETED" }, []]);
  });

  test("between two hosts", async () => {
    const { gate, conductor } = await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1, 2] });
    await cell.hostsUp(2);
    const release = gate.hold("hop");
    await cell.boot(1, [1, 2], { fake: { outcome: "reschedule", first: 1 } });
    await eventually("the hop", () => gate.held("hop") > 0);
    await cell.delete(1);
    await cell.become(1, "DELETED");
    release();
    await eventually("all tasks to end", () => conductor.taskCount === 0);
    expect([await cell.server(1), cell.existsOn(1), await cell.heldOn(1)]).toMatchObject([
      { status: "DELETED" },
      [],
      [],
    ]);
  });

  test("of a server whose host is gone does not wait for it, and the guest is destroyed when the host is back", async () => {
    await cell.startConductor(1, { unseenMs: 200 });
    const disk = freshDisk();
    const first = await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    await cell.hostsUp(1);
    await cell.boot(1, [1]);
    await cell.become(1, "ACTIVE");
    await eventually("the guest to run", () => cell.runsOn(1).length > 0);
    await first.agent.close();
    cell.forget(first.driver);
    await cell.hostsUp(0);
    await cell.delete(1);
    await cell.become(1, "DELETED");
    const back = await cell.startAgent({ id: "agent-1", hosts: [1], disk });
    await cell.hostsUp(1);
    expect(back.driver.guests()).toEqual([]);
  });

  test("tries again when the driver fails at first", async () => {
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-1", hosts: [1] });
    await cell.hostsUp(1);
    await cell.boot(1, [1], { fake: { destroy_failures: 1 } });
    await cell.become(1, "ACTIVE");
    await cell.delete(1);
    await cell.become(1, "DELETED");
    expect(cell.existsOn(1)).toEqual([]);
  });
});
