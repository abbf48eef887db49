import type { CellStore, TakenTask } from "../../core/stores/cell/cell-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import { conductorId, hostTree, taskId } from "./cell-fixtures.ts";

export interface CellSubject {
  readonly store: CellStore;
  /** The ledger of the same cell. */
  readonly ledger: Ledger;
  /** Makes the task's payload unreadable, as if a newer version had written it. */
  damage(taskId: string): Promise<void>;
  close(): Promise<void>;
}

/** The store of a new cell for each test, with three hosts of 10 VCPUs and two live conductors. */
export interface CellUnderTest extends CellSubject {
  /** Takes the task as the conductor of this number; asserts that it can be taken. */
  take(task: number, conductor?: number): Promise<TakenTask>;
  /** The used VCPUs of each host. */
  used(): Promise<readonly number[]>;
}

/** The right to write that taking a task gave. */
export function tenureOf(taken: TakenTask): Tenure {
  return { taskId: taken.task.id, serverUuid: taken.task.server?.uuid ?? "", epoch: taken.epoch };
}

export const HOST_VCPUS = 10;
const FAR_LEASE_MS = 3_600_000;

/** Sets the cell up: three hosts, two conductors. */
export async function cellUnderTest(subject: CellSubject): Promise<CellUnderTest> {
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
