import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CellStore, TakenTask, TaskClaim } from "../../core/cell/cell-store.ts";
import type { Ledger } from "../../core/ledger/ledger-port.ts";
import { conductorId, hostTree, taskId } from "./cell-fixtures.ts";
import { dispatchContract } from "./cell-store-dispatch.ts";
import { hostContract } from "./cell-store-hosts.ts";
import { raceContract } from "./cell-store-races.ts";
import { taskContract } from "./cell-store-tasks.ts";

export interface CellSubject {
  readonly store: CellStore;
  /** Of the same cell. */
  readonly ledger: Ledger;
  close(): Promise<void>;
}

/** The store of a new cell for each test: three hosts of 10 VCPUs, two conductors that live. */
export interface CellUnderTest extends CellSubject {
  /** Takes the task as the conductor of this number; asserts that it can be taken. */
  take(task: number, conductor?: number): Promise<TakenTask>;
  /** VCPUs in use on each of the hosts. */
  used(): Promise<readonly number[]>;
}

/** The right to write that taking a task gave. */
export function claimOf(taken: TakenTask): TaskClaim {
  return { taskId: taken.task.id, serverUuid: taken.task.server?.uuid ?? "", epoch: taken.epoch };
}

export const HOST_VCPUS = 10;
const FAR_LEASE_MS = 3_600_000;

/** What both bodies of a cell's store promise. */
export function cellStoreContract(name: string, makeSubject: () => Promise<CellSubject>): void {
  describe(`a cell's store in ${name}`, () => {
    let cell: CellUnderTest;
    beforeEach(async () => {
      cell = await cellUnderTest(await makeSubject());
    });
    afterEach(() => cell.close());
    const current = (): CellUnderTest => cell;

    describe("from above", () => dispatchContract(current));
    describe("for conductors", () => taskContract(current));
    describe("for hosts", () => hostContract(current));
    describe("when several call at once", () => raceContract(current));

    test("answers an empty batch with nothing", async () => {
      const { store } = cell;
      expect(await store.dispatch([])).toEqual([]);
      expect(await store.close([])).toEqual([]);
      expect(await store.requestDelete([])).toEqual([]);
      expect(await store.servers([])).toEqual([]);
      expect(await store.homes([])).toEqual([]);
      expect(await store.takeTasks(conductorId(0), [])).toEqual([]);
      expect(await store.commitActive([])).toEqual([]);
      expect(await store.hop([])).toEqual([]);
      expect(await store.commitError([])).toEqual([]);
      expect(await store.commitDeleted([])).toEqual([]);
      expect(await store.agentsSeen([])).toEqual([]);
    });
  });
}

async function cellUnderTest(subject: CellSubject): Promise<CellUnderTest> {
  const { store, ledger } = subject;
  await ledger.putTrees([0, 1, 2].map((host) => hostTree(host, HOST_VCPUS)));
  for (const id of [conductorId(0), conductorId(1)]) {
    await store.renewLease({ id, name: `conductor ${id}`, leaseMs: FAR_LEASE_MS });
  }
  return {
    ...subject,
    async take(task, conductor = 0) {
      const [taken] = await store.takeTasks(conductorId(conductor), [taskId(task)]);
      if (taken === undefined) throw new Error(`task ${task} cannot be taken`);
      return taken;
    },
    async used() {
      const { providers } = await ledger.dump();
      return providers.map((provider) => [...provider.inventories.values()][0]?.used ?? 0);
    },
  };
}
