import { StoreError } from "../../../adapters/postgres/store-error.ts";
import type { NamedStore } from "../../../core/placement/federated-store.ts";
import type { PlacementStore } from "../../../core/placement/placement-store.ts";

export interface StoreEvents {
  /** Told once an outage. */
  storeLost(cell: string, error: StoreError): void;
  /** Told of the first answer after it. */
  storeBack(cell: string): void;
}

/** The same store; tells when its database cannot be asked any more, and when it answers again: not once a request. */
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
