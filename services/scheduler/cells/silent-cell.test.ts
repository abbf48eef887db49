import { afterEach, beforeEach, expect, test } from "vitest";
import { serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { type RigCell, SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";
import type { SchedulerCellStore } from "../ports.ts";

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

/** The cell's store behind a link that lets nothing through until the test heals it. */
function cutOff({ store }: RigCell) {
  const healed = Promise.withResolvers<void>();
  let asked = 0;
  const behind: SchedulerCellStore = new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== "function") return method;
      return async (...given: unknown[]) => {
        asked += 1;
        await healed.promise;
        return method.apply(target, given);
      };
    },
  });
  return { behind, heal: healed.resolve, asked: () => asked };
}

test("a cell that is cut off gets no more requests once it has been silent for a while, and is used again once it answers", async () => {
  const [far, near] = [await rig.addCell("far"), await rig.addCell("near")];
  // According to the views, the far cell is by far the better one.
  await far.addHosts([64]);
  await near.addHosts([4]);
  const link = cutOff(far);
  await rig.start([far.open({ store: link.behind }), near.open()]);

  await rig.accept([rig.wants(1)]);
  await eventually("the first to be sent there", () => link.asked() > 0);
  rig.clock.advance(2_000);
  await rig.accept([rig.wants(2)]);
  await eventually("the second to be placed", () => rig.acked.includes(serverId(2)));
  expect(await rig.state(serverId(2))).toBe("dispatched near");
  expect(rig.acked).not.toContain(serverId(1));

  link.heal();
  await eventually("the first to be placed", () => rig.acked.includes(serverId(1)));
  expect(await rig.state(serverId(1))).toBe("dispatched far");
  await rig.accept([rig.wants(3)]);
  await eventually("the third to be placed", () => rig.acked.includes(serverId(3)));
  expect(await rig.state(serverId(3))).toBe("dispatched far");
});
