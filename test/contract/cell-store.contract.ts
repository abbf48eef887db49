import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { conductorId } from "./cell-fixtures.ts";
import { dispatchContract } from "./cell-store-dispatch.ts";
import { groupContract } from "./cell-store-groups.ts";
import { holdingContract } from "./cell-store-holdings.ts";
import { hostContract } from "./cell-store-hosts.ts";
import { listedServersContract } from "./cell-store-listed.ts";
import { raceContract } from "./cell-store-races.ts";
import { recordContract } from "./cell-store-records.ts";
import { serverSketchesContract } from "./cell-store-sketches.ts";
import { taskContract } from "./cell-store-tasks.ts";
import { tokenContract } from "./cell-store-tokens.ts";
import { untakenContract } from "./cell-store-untaken.ts";
import { listedValuesContract } from "./cell-store-values.ts";
import { type CellSubject, type CellUnderTest, cellUnderTest } from "./cell-under-test.ts";
import { leftoverContract } from "./leftovers.ts";
import { operationContract } from "./operation-store.ts";
import { operationActionsContract } from "./operation-store-actions.ts";
import { groupRaces } from "./operation-store-group-races.ts";
import { groupedOperationContract } from "./operation-store-groups.ts";
import { plugContract } from "./operation-store-plugs.ts";
import { transferContract } from "./operation-store-transfers.ts";

/** The guarantees of both implementations of a cell's store. */
export function cellStoreContract(name: string, makeSubject: () => Promise<CellSubject>): void {
  describe(`a cell's store in ${name}`, () => {
    let cell: CellUnderTest;
    beforeEach(async () => {
      cell = await cellUnderTest(await makeSubject());
    });
    afterEach(() => cell.close());
    const current = (): CellUnderTest => cell;

    describe("for schedulers and the api", () => dispatchContract(current));
    describe("for conductors", () => taskContract(current));
    describe("for a task that a conductor has begun untaken", () => untakenContract(current));
    describe("for records of the past", () => recordContract(current));
    describe("for lists", () => {
      tokenContract(current);
      listedServersContract(current);
      listedValuesContract(current);
      serverSketchesContract(current);
    });
    describe("for hosts", () => hostContract(current));
    describe("with operations", () => {
      operationContract(current);
      operationActionsContract(current);
    });
    describe("with hand-overs", () => transferContract(current));
    describe("with ports at destinations", () => plugContract(current));
    describe("with guests that may be left behind", () => leftoverContract(current));
    describe("for allocations", () => holdingContract(current));
    describe("with server groups", () => groupContract(current));

    describe("with operations on servers of groups", () => {
      groupedOperationContract(current);
      groupRaces(current);
    });
    describe("with concurrent calls", () => raceContract(current));

    test("answers an empty batch with nothing", async () => {
      const { store } = cell;
      expect(await store.dispatch([])).toEqual([]);
      expect(await store.close([])).toEqual([]);
      expect(await store.requestDelete([])).toEqual([]);
      expect(await store.servers([])).toEqual([]);
      expect(await store.homes([])).toEqual([]);
      expect(await store.takeTasks(conductorId(0), [])).toEqual([]);
      expect(await store.releaseTasks(conductorId(0), [])).toEqual([]);
      expect(await store.sightings([])).toEqual([]);
      expect(await store.knownRoots([])).toEqual([]);
      expect(await store.commitActive([])).toEqual([]);
      expect(await store.hop([])).toEqual([]);
      expect(await store.commitError([])).toEqual([]);
      expect(await store.commitDeleted([])).toEqual([]);
      expect(await store.agentsSeen([], 0)).toEqual({ down: [], othersUnseen: false });
    });
  });
}
