import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";
import { DEFAULT_SCHEDULER_SETTINGS } from "../settings.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

test("a request that a full disk refuses goes to another cell at once, and the cell is used again after a while", async () => {
  const [far, near] = [await rig.addCell("far"), await rig.addCell("near")];
  // According to the views, the far cell is by far the better one.
  await far.addHosts([64]);
  await near.addHosts([4]);
  await rig.start([far.open(), near.open()]);
  let asked = 0;
  let isFull = true;
  far.ledger.isFull = () => {
    asked += 1;
    return isFull;
  };

  await rig.accept([rig.wants(1)]);
  await eventually("the first to be placed", () => rig.acked.includes(serverId(1)));
  expect(await rig.state(serverId(1))).toBe("dispatched near");
  expect(far.store.look(serverId(1))).toBeNull();
  expect(asked).toBe(1);

  await rig.accept([rig.wants(2)]);
  await eventually("the second to be placed", () => rig.acked.includes(serverId(2)));
  expect(await rig.state(serverId(2))).toBe("dispatched near");
  expect(asked).toBe(1);

  isFull = false;
  rig.clock.advance(DEFAULT_SCHEDULER_SETTINGS.cellRefusedMs);
  await rig.accept([rig.wants(3)]);
  await eventually("the third to be placed", () => rig.acked.includes(serverId(3)));
  expect(await rig.state(serverId(3))).toBe("dispatched far");
});

test("a request that another scheduler may have sent to the cell does not leave it while the cell cannot be closed to it", async () => {
  const [far, near] = [await rig.addCell("far"), await rig.addCell("near")];
  await far.addHosts([64]);
  await near.addHosts([4]);
  await rig.accept([rig.wants(1)], false);
  await rig.apiStore.assignCells([{ serverUuid: serverId(1), from: null, to: "far" }]);
  far.ledger.isFull = () => true;
  await rig.start([far.open(), near.open()]);
  await rig.publish(rig.wants(1), `delivery ${rig.putOff.length}`);
  await eventually("it to be put off", () => rig.putOff.includes(serverId(1)));
  expect(await rig.state(serverId(1))).toBe("dispatched far");
  expect(near.store.look(serverId(1))).toBeNull();

  far.ledger.isFull = () => false;
  rig.clock.advance(DEFAULT_SCHEDULER_SETTINGS.cellRefusedMs);
  await rig.publish(rig.wants(1), `delivery ${rig.putOff.length}`);
  await eventually("it to be placed", () => far.store.look(serverId(1)) !== null);
  expect(near.store.look(serverId(1))).toBeNull();
});

test("a request that only a cell with a full disk could take waits, and the log names the disk", async () => {
  const far = await rig.addCell("far");
  await far.addHosts([64]);
  const lines: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  await rig.start([far.open()], { logger });
  far.ledger.isFull = () => true;
  await rig.accept([rig.wants(1)]);
  await eventually("it to be put off", () => rig.putOff.includes(serverId(1)));
  expect(lines.join("")).toContain(
    "no answer from far (its database refuses to write: could not extend file: No space left on device; if its disk is full, free space there)",
  );
});

test("a request that is assigned to no cell is refused in the end if only a cell with a full disk could take it", async () => {
  const far = await rig.addCell("far");
  await far.addHosts([64]);
  const { placeWithinMs } = DEFAULT_SCHEDULER_SETTINGS;
  await rig.start([far.open()], {}, { cellRefusedMs: 2 * placeWithinMs });
  far.ledger.isFull = () => true;
  await rig.accept([rig.wants(1)]);
  await eventually("the cell to be avoided", () => rig.putOff.includes(serverId(1)));
  const spec = rig.wants(2);
  await rig.accept([spec]);
  await eventually("it to be put off", () => rig.putOff.includes(serverId(2)));
  expect(await rig.state(serverId(2))).toBe("accepted");

  rig.clock.advance(placeWithinMs);
  await rig.publish(spec, "a minute later");
  await eventually("it to be refused", async () => (await rig.state(serverId(2))) === "failed");
  const [record] = await rig.apiStore.requests([serverId(2)]);
  expect(record?.fault).toContain("far (its database refuses to write: could not extend file");
  expect(await rig.state(serverId(1))).toBe("dispatched far");
});
