/**
 * A delete: the server is destroyed on its home host (and on the hosts of an open move), and then its allocations are released. Its build
 * was fenced when the delete was stored, so the home no longer changes.
 */
export type DeleteState =
  /**
   * The host removes the guest and refuses any later build of the server. `rest` lists the other hosts that have a guest, for a server that
   * is being moved. `tries` counts the failures of this host.
   */
  | {
      readonly kind: "destroying";
      readonly host: string;
      readonly rest: readonly string[];
      readonly tries: number;
      /** Earlier hosts that did not report that the guest is gone. */
      readonly left: readonly string[];
    }
  /** The end is being written: the server becomes DELETED and holds nothing, except where a guest may be left. */
  | { readonly kind: "releasing" }
  | { readonly kind: "ended"; readonly as: "deleted" | "fenced" };

export type DeleteEvent =
  /** The host has connected, perhaps again, and has not received the delete over this connection. */
  | { readonly kind: "host-connected" }
  | { readonly kind: "destroyed" }
  | { readonly kind: "destroy-failed"; readonly reason: string }
  /** The host was not connected for longer than the grace. Its guests are compared with the database when it comes back. */
  | { readonly kind: "host-gone" }
  /** An operator has forced the host down, so nothing runs there. */
  | { readonly kind: "host-fenced" }
  | { readonly kind: "delete-committed" }
  | { readonly kind: "fenced" };

/** Each may be carried out twice: hosts answer a repeated destroy, and the commit is fenced by the task's epoch. */
export type DeleteEffect =
  | { readonly kind: "destroy-server"; readonly host: string; readonly delayMs: number }
  /** `left` lists the hosts where the guest may be left. The allocations there are kept until the hosts report that it is gone. */
  | { readonly kind: "commit-deleted"; readonly left: readonly string[] }
  /** The host failed to destroy the guest, or could not be asked. A later comparison removes the guest. */
  | { readonly kind: "report-leftover"; readonly host: string; readonly reason: string }
  | { readonly kind: "tell-deleted" };

export interface DeleteStep {
  readonly state: DeleteState;
  readonly effects: readonly DeleteEffect[];
}

/**
 * How often a connected host may fail to destroy the guest before the server becomes DELETED without it. The allocations there are kept.
 */
export const DESTROY_TRIES_MAX = 5;
const DESTROY_RETRY_MS = 500;

/** (taken) → destroying on the first of the hosts; → releasing when there is none. Also after a crash. */
export function beginDelete(hosts: readonly string[]): DeleteStep {
  return leave(hosts, [], []);
}

/** One step. Events for which the state does not wait change nothing. */
export function stepDelete(state: DeleteState, event: DeleteEvent): DeleteStep {
  if (state.kind === "ended") return { state, effects: [] };
  if (event.kind === "fenced") return { state: { kind: "ended", as: "fenced" }, effects: [] };
  switch (state.kind) {
    case "destroying":
      return stepDestroying(state, event);
    case "releasing":
      if (event.kind !== "delete-committed") return { state, effects: [] };
      return { state: { kind: "ended", as: "deleted" }, effects: [{ kind: "tell-deleted" }] };
    default:
      return state satisfies never;
  }
}

/** destroying → destroying (again), → releasing (gone, unreachable, or failed too often). */
function stepDestroying(
  state: Extract<DeleteState, { kind: "destroying" }>,
  event: Exclude<DeleteEvent, { kind: "fenced" }>,
): DeleteStep {
  const { host } = state;
  switch (event.kind) {
    case "host-connected":
      return { state, effects: [{ kind: "destroy-server", host, delayMs: 0 }] };
    case "destroyed":
    case "host-fenced":
      return leave(state.rest, state.left, []);
    case "host-gone":
      return leaveBehind(state, "the host is not connected");
    case "destroy-failed": {
      const tries = state.tries + 1;
      if (tries >= DESTROY_TRIES_MAX) return leaveBehind(state, event.reason);
      const delayMs = DESTROY_RETRY_MS * 2 ** (tries - 1);
      return { state: { ...state, tries }, effects: [{ kind: "destroy-server", host, delayMs }] };
    }
    case "delete-committed":
      return { state, effects: [] };
    default:
      return event satisfies never;
  }
}

/** Leaves a host that may still have the guest. */
function leaveBehind({ host, rest, left }: Extract<DeleteState, { kind: "destroying" }>, reason: string): DeleteStep {
  return leave(rest, [...left, host], [{ kind: "report-leftover", host, reason }]);
}

/** (destroying) → destroying on the next host, → releasing after the last. */
function leave(hosts: readonly string[], left: readonly string[], before: readonly DeleteEffect[]): DeleteStep {
  const [host, ...rest] = hosts;
  if (host !== undefined) {
    const ask: DeleteEffect = { kind: "destroy-server", host, delayMs: 0 };
    return { state: { kind: "destroying", host, rest, tries: 0, left }, effects: [...before, ask] };
  }
  return { state: { kind: "releasing" }, effects: [...before, { kind: "commit-deleted", left }] };
}
