import type { ApiStore } from "../core/stores/api/api-store.ts";
import type { CellStore } from "../core/stores/cell/cell-store.ts";
import { preciseNow } from "../runtime/clock.ts";
import { overriding } from "../runtime/overriding.ts";

/** Called by a cloud in one process when something about its servers is committed. */
export interface CloudObserver {
  /** Called with the number of claims that succeeded: dispatches and hops. */
  claimed(claims: number): void;
  attemptFailed(serverUuid: string): void;
  /** `atMs` is the time in milliseconds since the epoch, with fractions. The call itself may come a moment later. */
  active(serverUuid: string, atMs: number): void;
  failed(serverUuid: string, reason: string, atMs: number): void;
}

/** Reports requests that no scheduler could place. */
export function observeApiStore<Store extends Pick<ApiStore, "failRequests">>(
  store: Store,
  observer: CloudObserver,
): Store {
  const replacements: Pick<ApiStore, "failRequests"> = {
    async failRequests(failures) {
      await store.failRequests(failures);
      for (const { serverUuid, fault } of failures) observer.failed(serverUuid, fault, preciseNow());
    },
  };
  return overriding(store, replacements as Partial<Store>);
}

/** Reports claims and the ends of builds. Without an observer, it returns the store itself. */
export function observeCellStore(store: CellStore, observer: CloudObserver | null): CellStore {
  if (observer === null) return store;
  return overriding(store, {
    async dispatch(dispatches) {
      const outcomes = await store.dispatch(dispatches);
      observer.claimed(outcomes.filter((outcome) => outcome.kind === "dispatched").length);
      return outcomes;
    },
    async hop(hops) {
      const outcomes = await store.hop(hops);
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind !== "committed") continue;
        observer.claimed(1);
        observer.attemptFailed(hops[index]!.serverUuid);
      }
      return outcomes;
    },
    async commitActive(commits) {
      const outcomes = await store.commitActive(commits);
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind === "committed") observer.active(commits[index]!.serverUuid, preciseNow());
      }
      return outcomes;
    },
    async commitError(errors) {
      const outcomes = await store.commitError(errors);
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind !== "committed") continue;
        observer.attemptFailed(errors[index]!.serverUuid);
        observer.failed(errors[index]!.serverUuid, errors[index]!.reason, preciseNow());
      }
      return outcomes;
    },
  });
}
