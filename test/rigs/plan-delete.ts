import type { CellStore, TakenTask } from "../../core/stores/cell/cell-store.ts";
import type { ModelHost } from "./model-host.ts";

interface PlannedDelete {
  /** Destroys the guests on the hosts that are up, and returns the names of those that are not. */
  destroy(): readonly string[];
  commit(left: readonly string[]): Promise<void>;
}

/** Acts as `DeleteRun`: reads where guests of the server may be, and plans to destroy them there whatever has become of the server by then. */
export async function planDelete(
  store: Pick<CellStore, "homes" | "commitDeleted">,
  hosts: readonly ModelHost[],
  taken: TakenTask,
): Promise<PlannedDelete> {
  const serverUuid = taken.task.server?.uuid ?? "";
  const [home] = await store.homes([serverUuid]);
  const places = [taken.host, home?.move?.source?.host, home?.move?.dest.host];
  const migrations = home?.move ? [home.move.uuid] : [];
  const claim = { taskId: taken.task.id, serverUuid, epoch: taken.epoch };
  return {
    destroy: () => {
      const asked = hosts.filter((host) => places.includes(host.name));
      for (const host of asked) host.bury(serverUuid);
      return asked.filter((host) => !host.isUp).map((host) => host.name);
    },
    commit: async (left) => void (await store.commitDeleted([{ ...claim, migrations, left }])),
  };
}
