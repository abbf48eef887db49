import { expect, test } from "vitest";
import { factsOf } from "../../core/tasks/operation-facts.ts";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import { writeOf } from "../../core/tasks/operation-writes.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { conductorId, dispatchOf, numbered, serverId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

const moveId = numbered(0xe, 1);
const [PORT_A, PORT_B] = [numbered(0xf, 1), numbered(0xf, 2)];
const DESTINATIONS = [0, 1].map((selection) => attemptIdOf(moveId, selection));

/** The guarantees for what Neutron reports about ports of servers that are moved. */
export function plugContract(cell: () => CellUnderTest): void {
  const begin = async (kind: OperationKind) => {
    const { store } = cell();
    await store.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
    await store.commitActive([{ ...tenureOf(await cell().take(1)), selection: 0 }]);
    await beginOperationOn(store, { server: 1, kind, hosts: [1, 2], taskId: moveId });
    const [taken] = await store.takeTasks(conductorId(0), [moveId]);
    if (taken === undefined) throw new Error("cannot be taken");
    return async (step: number, from: "preparing" | "restoring", to: "preparing" | "restoring" | "give-up") => {
      const transition = { selection: to === "preparing" ? 1 : 0, reason: "", noted: [], unseenMs: 0 };
      const write = writeOf(factsOf(taken.task), { ...transition, from: { stage: from, selection: 0 }, to });
      await store.commitStep([{ ...tenureOf(taken), step, ...write }]);
    };
  };
  const report = (portId: string, isFailed = false, server = 1) =>
    cell().store.notePlugged([{ serverUuid: serverId(server), portId, isFailed }]);
  const reported = async () =>
    (await cell().store.pluggedPorts(DESTINATIONS)).map((ports) =>
      ports.map(({ portId, isFailed }) => `${portId === PORT_A ? "a" : "b"}${isFailed ? " failed" : ""}`),
    );

  test("the ports that are reported during a live migration count for its present destination, and the last report counts", async () => {
    const { store } = cell();
    await store.notePlugged([]);
    await report(PORT_A);
    const commit = await begin("live-migrate");
    expect(await reported()).toEqual([[], []]);
    await report(PORT_B, true);
    await report(PORT_A);
    await report(PORT_A, false, 7);
    await store.notePlugged([{ serverUuid: "nonsense", portId: PORT_A, isFailed: true }]);
    expect(await reported()).toEqual([["a", "b failed"], []]);
    const twice = [true, false].map((isFailed) => ({ serverUuid: serverId(1), portId: PORT_B, isFailed }));
    await store.notePlugged(twice);
    expect(await reported()).toEqual([["a", "b"], []]);
    await commit(1, "preparing", "restoring");
    await commit(2, "restoring", "give-up");
    await report(PORT_A, true);
    expect((await reported())[0]).not.toContain("a failed");
    expect(await store.pluggedPorts([])).toEqual([]);
  });

  test("an event after the next destination was chosen counts for that one", async () => {
    const commit = await begin("live-migrate");
    await report(PORT_A);
    await commit(1, "preparing", "preparing");
    await report(PORT_B);
    expect(await reported()).toEqual([["a"], ["b"]]);
  });

  test("what was reported for a migration is forgotten when something is reported after its end", async () => {
    const commit = await begin("live-migrate");
    await report(PORT_A);
    await commit(1, "preparing", "restoring");
    await commit(2, "restoring", "give-up");
    expect(await reported()).toEqual([["a"], []]);
    await report(PORT_B);
    expect(await reported()).toEqual([[], []]);
  });

  test("the ports of a server that is moved without its memory are not noted, since they show in Neutron how they are connected", async () => {
    await begin("migrate");
    await report(PORT_A);
    expect(await reported()).toEqual([[], []]);
  });

  test("the volume that Cinder has filled for a rebuild counts for the rebuild's new guest", async () => {
    await begin("reimage");
    await report(PORT_A);
    expect(await reported()).toEqual([["a"], []]);
  });
}
