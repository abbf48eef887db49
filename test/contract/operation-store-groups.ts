import { describe, expect, test } from "vitest";
import type { Stage } from "../../core/tasks/operation-routes.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { deleteTask, hostName, numbered } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";
import { DISPATCHED, groupedServers, groupOf, move } from "./grouped-servers.ts";

const APART = groupOf("anti-affinity", 1);
const PAIRS = groupOf("anti-affinity", 2, 2);
const TOGETHER = groupOf("affinity", 3);

const full = (inFlight: boolean, ...hosts: number[]) => ({
  kind: "group-conflict",
  policy: "anti-affinity",
  hosts: hosts.map(hostName),
  inFlight,
});
const onlyOn = (inFlight: boolean, ...hosts: number[]) => ({
  kind: "group-conflict",
  policy: "affinity",
  hosts: hosts.map(hostName),
  inFlight,
});
const REFUSED = { kind: "refused", why: expect.stringContaining("server group") };

/** A group's rule holds for both ends of a move until the move has ended. The tests use hosts 0 to 2. */
export function groupedOperationContract(cell: () => CellUnderTest): void {
  const { dispatch, boot, begin, step, along } = groupedServers(cell);

  describe("a live migration of an anti-affinity group's server", () => {
    test("occupies its source and its destination at every stage, and afterwards only its new home", async () => {
      await boot(1, 0, APART);
      expect(await begin(1, "live-migrate", 1)).toMatchObject({ kind: "begun" });
      const stages = ["preparing", "handing-over", "starting", "cleaning"] as const;
      for (const [at, stage] of stages.entries()) {
        if (at > 0) await along(1, stages[at - 1] as Stage, stage);
        expect([stage, await dispatch(2, 0, APART), await dispatch(2, 1, APART)]).toEqual([
          stage,
          full(true, 0, 1),
          full(true, 0, 1),
        ]);
      }
      await along(1, "cleaning", "succeed");
      expect(await dispatch(2, 1, APART)).toEqual(full(false, 1));
      expect(await dispatch(2, 0, APART)).toEqual(DISPATCHED);
    });

    test("releases its destination together with the claim there when it goes back to its source", async () => {
      await boot(1, 0, APART);
      await begin(1, "live-migrate", 1);
      await along(1, "preparing", "handing-over", "starting", "retracting");
      expect([await dispatch(2, 0, APART), await dispatch(2, 1, APART)]).toEqual([full(true, 0, 1), full(true, 0, 1)]);
      await along(1, "retracting", "restoring");
      expect([await dispatch(2, 0, APART), await dispatch(2, 1, APART)]).toEqual([full(true, 0), DISPATCHED]);
      await along(1, "restoring", "give-up");
      expect(await dispatch(3, 0, APART)).toMatchObject({ kind: "group-conflict", inFlight: false });
    });

    test("releases a destination by a hop, and does not hop to one that another move has claimed", async () => {
      await boot(1, 0, APART);
      await begin(1, "live-migrate", 1, 2);
      expect(await step(1, ["preparing", "preparing"], { next: 1 })).toMatchObject({ kind: "committed" });
      expect(await dispatch(2, 2, APART)).toEqual(full(true, 0, 2));
      expect(await dispatch(2, 1, APART)).toEqual(DISPATCHED);
      expect(await step(1, ["preparing", "preparing"], { selection: 1, next: 0 })).toMatchObject(REFUSED);
    });

    test("does not go where another server of the group moves to or may go back to", async () => {
      await boot(1, 0, APART);
      await boot(2, 1, APART);
      await begin(1, "live-migrate", 2);
      expect(await begin(2, "live-migrate", 2)).toEqual({ ...REFUSED, inFlight: true });
      expect(await begin(2, "live-migrate", 0)).toEqual({ ...REFUSED, inFlight: true });
      await along(1, "preparing", "handing-over", "starting", "cleaning", "succeed");
      expect(await begin(2, "live-migrate", 2)).toEqual({ ...REFUSED, inFlight: false });
      expect(await begin(2, "live-migrate", 0)).toMatchObject({ kind: "begun" });
    });

    test("ends with its server: a deleted server occupies no place", async () => {
      const { store } = cell();
      await boot(1, 0, APART);
      await begin(1, "live-migrate", 1);
      await store.requestDelete([deleteTask(1, 101)]);
      expect(await dispatch(2, 1, APART)).toEqual(full(true, 0, 1));
      await store.commitDeleted([{ ...tenureOf(await cell().take(101)), migrations: [move(1)] }]);
      expect(await dispatch(2, 1, APART)).toEqual(DISPATCHED);
      expect(await dispatch(3, 0, APART)).toEqual(DISPATCHED);
    });
  });

  test("a move to the server's present host counts once, because max_server_per_host counts servers, not places", async () => {
    await boot(1, 0, PAIRS);
    expect(await begin(1, "resize", 0)).toMatchObject({ kind: "begun" });
    await boot(2, 0, PAIRS);
    expect(await dispatch(3, 0, PAIRS)).toEqual(full(true, 0));
    await boot(3, 1, PAIRS);
    expect(await begin(3, "live-migrate", 2)).toMatchObject({ kind: "begun" });
    expect([await dispatch(4, 2, PAIRS), await dispatch(5, 2, PAIRS)]).toEqual([DISPATCHED, full(true, 0, 2)]);
  });

  test("a resize that waits to be confirmed keeps its source for the revert, and no claim can take it", async () => {
    await boot(1, 0, APART);
    await begin(1, "resize", 1);
    await along(1, "preparing", "handing-over", "starting", "succeed");
    // Nothing is in progress: the resize may wait for days.
    expect(await dispatch(2, 0, APART)).toEqual(full(false, 0, 1));
    const id = numbered(0xd, 50);
    const { outcome } = await beginOperationOn(cell().store, { server: 1, kind: "revert", taskId: id });
    expect(outcome).toMatchObject({ kind: "begun" });
    expect(await dispatch(2, 0, APART)).toEqual(full(true, 0, 1));
    expect(await dispatch(2, 1, APART)).toEqual(full(true, 0, 1));
    expect(await step(1, ["verifying", "retreating"], { id })).toMatchObject({ kind: "committed" });
    expect(await dispatch(2, 1, APART)).toEqual(full(true, 0, 1));
    expect(await step(1, ["retreating", "restoring"], { id })).toMatchObject({ kind: "committed" });
    expect(await dispatch(2, 0, APART)).toEqual(full(true, 0));
    expect(await step(1, ["restoring", "succeed"], { id })).toMatchObject({ kind: "committed" });
    expect([await dispatch(2, 0, APART), await dispatch(2, 1, APART)]).toEqual([full(false, 0), DISPATCHED]);
  });

  test("a confirmed resize frees its source", async () => {
    await boot(1, 0, APART);
    await begin(1, "resize", 1);
    await along(1, "preparing", "handing-over", "starting", "succeed");
    const id = numbered(0xd, 51);
    await beginOperationOn(cell().store, { server: 1, kind: "confirm", taskId: id });
    expect(await dispatch(2, 0, APART)).toEqual(full(true, 0, 1));
    await step(1, ["cleaning", "succeed"], { id });
    expect(await dispatch(2, 0, APART)).toEqual(DISPATCHED);
  });

  test("an evacuation keeps its source until it has succeeded, because it may be aborted", async () => {
    await boot(1, 0, APART);
    expect(await begin(1, "evacuate", 1)).toMatchObject({ kind: "begun" });
    expect([await dispatch(2, 0, APART), await dispatch(2, 1, APART)]).toEqual([full(true, 0, 1), full(true, 0, 1)]);
    await along(1, "preparing", "starting", "succeed");
    expect([await dispatch(2, 1, APART), await dispatch(2, 0, APART)]).toEqual([full(false, 1), DISPATCHED]);
  });

  test("a server that is unshelved occupies its host from the first stage on, even against other servers of its group", async () => {
    const { store } = cell();
    await boot(1, 0, APART);
    const id = numbered(0xd, 52);
    await beginOperationOn(store, { server: 1, kind: "shelve-offload", taskId: id });
    await step(1, ["powering", "offloading"], { id });
    expect(await dispatch(2, 0, APART)).toEqual(full(true, 0));
    await step(1, ["offloading", "succeed"], { id });
    await boot(2, 0, APART);
    expect(await begin(1, "unshelve", 0)).toEqual({ ...REFUSED, inFlight: false });
    expect(await begin(1, "unshelve", 1)).toMatchObject({ kind: "begun" });
    expect(await dispatch(3, 1, APART)).toEqual(full(true, 0, 1));
  });

  test("a boot that conflicts only with a server that is being built may succeed later, because that server may hop away", async () => {
    expect(await dispatch(1, 0, APART)).toEqual(DISPATCHED);
    expect(await dispatch(2, 0, APART)).toEqual(full(true, 0));
    await cell().store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
    expect(await dispatch(2, 0, APART)).toEqual(full(false, 0));
  });

  describe("affinity", () => {
    test("while a lone server moves, others are refused until it has arrived, and then allowed only there", async () => {
      await boot(1, 0, TOGETHER);
      expect(await begin(1, "live-migrate", 1)).toMatchObject({ kind: "begun" });
      for (const host of [0, 1, 2]) expect(await dispatch(2, host, TOGETHER)).toEqual(onlyOn(true, 0, 1));
      await along(1, "preparing", "handing-over", "starting", "cleaning");
      expect(await dispatch(2, 1, TOGETHER)).toEqual(onlyOn(true, 0, 1));
      await along(1, "cleaning", "succeed");
      expect([await dispatch(2, 0, TOGETHER), await dispatch(2, 1, TOGETHER)]).toEqual([onlyOn(false, 1), DISPATCHED]);
    });

    test("a server does not leave the others, and can be resized on its own host", async () => {
      await boot(1, 0, TOGETHER);
      await boot(2, 0, TOGETHER);
      expect(await begin(1, "live-migrate", 1)).toEqual({ ...REFUSED, inFlight: false });
      expect(await begin(1, "resize", 0)).toMatchObject({ kind: "begun" });
      expect(await dispatch(3, 0, TOGETHER)).toEqual(DISPATCHED);
    });

    test("a resize that waits to be confirmed keeps other servers out of the group, because after a revert they would be elsewhere", async () => {
      await boot(1, 0, TOGETHER);
      await begin(1, "resize", 1);
      await along(1, "preparing", "handing-over", "starting", "succeed");
      for (const host of [0, 1]) expect(await dispatch(2, host, TOGETHER)).toEqual(onlyOn(false, 0, 1));
    });
  });
}
