import type { PlacementStore } from "../../../core/stores/cell/placement-store.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import type { NamedStore } from "./federation/federated-store.ts";

export interface StoreEvents {
  /** Called once per outage. */
  storeLost(cell: string, error: StoreError): void;
  /** Called at the first answer after an outage. */
  storeBack(cell: string): void;
}

/** Wraps a store to report once when its database becomes unavailable, and once when it answers again. */
export function watchStore({ name, store }: NamedStore, events: StoreEvents): NamedStore {
  let isLost = false;
  const watch = async (answer: Promise<unknown>): Promise<unknown> => {
    try {
      const result = await answer;
      if (isLost) events.storeBack(name);
      isLost = false;
      return result;
    } catch (error) {
      if (error instanceof StoreError && error.code === "unavailable") {
        if (!isLost) events.storeLost(name, error);
        isLost = true;
      }
      throw error;
    }
  };
  const watched = Object.entries(store).map(([operation, ask]: [string, (...args: never[]) => Promise<unknown>]) => [
    operation,
    (...args: never[]) => watch(ask(...args)),
  ]);
  return { name, store: Object.fromEntries(watched) as PlacementStore };
}
