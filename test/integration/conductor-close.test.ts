import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { serverId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const SPEED = 20;

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell({ speed: SPEED }).open();
});
afterEach(() => cell.close());

const takersOf = async (server: number) =>
  (await cell.store.tasksOf(serverId(server))).flatMap(({ takings }) => takings.map(({ name }) => name));

describe("a conductor that is closed while its database accepts calls and does not answer", () => {
  test.each([["sweepTasks"], ["renewLease"], ["giveUpLease"], ["agentsSeen"]] as const)(
    "closes without the answer to %s, and another one takes over the build that it has left",
    async (call) => {
      const { conductor, gate } = await cell.startConductor(1);
      await cell.startAgent({ id: "agent-1", hosts: [1], conductors: [1, 2] });
      await cell.hostsUp(1);
      await cell.boot(1, [1], { fake: { duration_ms: 600_000 } });
      await eventually("the build to be held", async () => (await takersOf(1)).length > 0);
      gate.hold(call);
      if (call !== "giveUpLease") await eventually("the call to be under way", () => gate.held(call) > 0);
      await conductor.close();
      expect(gate.held(call)).toBeGreaterThan(0);
      await cell.startConductor(2);
      await eventually("the other one to take the build", async () => (await takersOf(1)).includes("conductor-2"));
    },
  );
});
