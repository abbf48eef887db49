/**
 * A delete: the server is destroyed on its home host (and wherever a move has brought it), then gives back what it holds. Its builder was fenced when the
 * delete was stored, so the home no longer changes.
 */
export type DeleteState =
  /**
   * The host removes the guest and refuses any later build of the server. `rest`: the other hosts that have one, of a server that is
   * being moved. `tries`: how often this one failed.
   */
  | {
      readonly kind: "destroying";
      readonly host: string;
      readonly rest: readonly string[];
      readonly tries: number;
      /** Hosts before this one that did not say that the guest is gone. */
      readonly left: readonly string[];
    }
  /** The end is being written: DELETED; nothing is held any longer, except where a guest may be left. */
  | { readonly kind: "releasing" }
  | { readonly kind: "ended"; readonly as: "deleted" | "fenced" };

export type DeleteEvent =
  /** The host is connected (again) and has not heard of the delete over this connection. */
  | { readonly kind: "host-connected" }
  | { readonly kind: "destroyed" }
  | { readonly kind: "destroy-failed"; readonly reason: string }
  /** Not connected for longer than the grace: the host's guests are compared with the database when it comes back. */
  | { readonly kind: "host-gone" }
  /** An operator has forced the host down: nothing runs there. */
  | { readonly kind: "host-fenced" }
  | { readonly kind: "delete-committed" }
  | { readonly kind: "fenced" };

/** Each may be done twice: hosts answer a repeated destroy, and the commit is fenced by the task's epoch. */
export type DeleteEffect =
  | { readonly kind: "destroy-server"; readonly host: string; readonly delayMs: number }
  /** `left`: hosts where the guest may be left; what is held there is kept until they say that it is gone. */
  | { readonly kind: "commit-deleted"; readonly left: readonly string[] }
  /** The host would not, or could not be asked; whoever finds the guest later removes it. */
  | { readonly kind: "report-leftover"; readonly host: string; readonly reason: string }
  | { readonly kind: "tell-deleted" };

export interface DeleteStep {
  readonly state: DeleteState;
  readonly effects: readonly DeleteEffect[];
}

/** How often a host that is connected may fail to destroy before the server is DELETED without it; its room is kept. */
export const DESTROY_TRIES_MAX = 5;
const DESTROY_RETRY_MS = 500;

/** (taken) → destroying on the first of the hosts; → releasing when there is none. Also after a crash. */
export function beginDelete(hosts: readonly string[]): DeleteStep {
  return leave(hosts, [], []);
}

/** One step; events that the state does not wait for change nothing. */
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

/** destroying → destroying (once more), → releasing (gone, unreachable, or failed too often). */
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

/** As `leave`, from a host that may still have the guest. */
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
