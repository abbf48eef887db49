import {
  abortedBuildMessage,
  exhaustedBuildMessage,
  type PastAttempt,
  refusedBuildMessage,
} from "./failure-message.ts";

/**
 * Whether another host may succeed after an attempt failed. `reschedule`: another host may succeed. `abort`: no host can build this server
 * (Nova's RescheduledException and BuildAbortException).
 */
export type AttemptFailure = "reschedule" | "abort";

/**
 * The hosts of the plan in the order in which they are tried. The first one holds the claim when the task is stored. A host that occurs
 * several times in a row has several ways to fit; the next one is for the case that the previous one no longer fits. Where the first host
 * occurs again later, a round of repetitions begins. In it only the host that failed last is tried, and only while there were fewer attempts
 * than rounds. The server still has its claim on that host, so no other server can have taken its place there.
 */
export interface BuildHosts {
  readonly hosts: readonly string[];
  /** The most attempts, however many hosts there are. 0 or absent: one for each host. A host that was never called does not count. */
  readonly attemptsMax?: number;
}

/** The state of a build. Exactly one selection holds the server's allocation at any time: `selection`, or `from` during a hop. */
export type BuildState =
  /** The host of `selection` prepares the guest. */
  | { readonly kind: "preparing"; readonly selection: number; readonly past: readonly PastAttempt[] }
  /** The guest is prepared, and the commit that makes this host the server's home is being written. */
  | { readonly kind: "settling"; readonly selection: number; readonly past: readonly PastAttempt[] }
  /** The hop is being written, which swaps the claim of the failed `from` for one of the alternate `to`. */
  | {
      readonly kind: "hopping";
      readonly from: number;
      readonly to: number;
      readonly reason: string;
      /** The result of `from`. */
      readonly result: PastAttempt["result"];
      readonly past: readonly PastAttempt[];
    }
  /** The end is being written: the server goes to ERROR and holds nothing. */
  | {
      readonly kind: "failing";
      readonly selection: number;
      readonly failure: AttemptFailure;
      readonly reason: string;
      readonly message: string;
    }
  /** `fenced`: another conductor owns the task, or the task was cancelled. */
  | { readonly kind: "ended"; readonly as: "active" | "error" | "fenced" };

export type BuildEvent =
  /** The host has connected, perhaps again, and has not received the attempt over this connection. */
  | { readonly kind: "host-connected"; readonly selection: number }
  | { readonly kind: "prepared"; readonly selection: number }
  /** The host reported the failure, or it is gone or took too long. */
  | { readonly kind: "failed"; readonly selection: number; readonly failure: AttemptFailure; readonly reason: string }
  /** The host could not be called and is skipped. */
  | { readonly kind: "uncalled"; readonly selection: number; readonly reason: string }
  | { readonly kind: "active-committed" }
  /** The database does not make the guest the server's home, because another one may run. No other host could help. */
  | { readonly kind: "active-refused"; readonly reason: string }
  | { readonly kind: "hop-committed" }
  | { readonly kind: "hop-skipped"; readonly why: string }
  | { readonly kind: "error-committed" }
  | { readonly kind: "fenced" };

/** The actions to carry out. Each may be carried out twice: calls name their attempt, and commits are fenced by the task's epoch. */
export type BuildEffect =
  | { readonly kind: "call-host"; readonly selection: number }
  | { readonly kind: "commit-active"; readonly selection: number }
  /** `result` is the result of `from`. */
  | {
      readonly kind: "hop";
      readonly from: number;
      readonly to: number;
      readonly reason: string;
      readonly result: PastAttempt["result"];
    }
  | {
      readonly kind: "commit-error";
      readonly selection: number;
      readonly attemptReason: string;
      readonly message: string;
    }
  | { readonly kind: "start-guest"; readonly selection: number }
  | { readonly kind: "destroy-guest"; readonly selection: number }
  /** This conductor does not know who owns the guest now. Ask the cell's database, then start the guest, destroy it, or leave it alone. */
  | { readonly kind: "settle-guest"; readonly selection: number }
  | { readonly kind: "tell-active"; readonly selection: number }
  | { readonly kind: "tell-attempt-failed"; readonly selection: number; readonly reason: string }
  | { readonly kind: "tell-error"; readonly selection: number; readonly message: string };

export interface BuildStep {
  readonly state: BuildState;
  readonly effects: readonly BuildEffect[];
}

/**
 * (taken) → preparing. Also after a crash: `selection` and `past` are then those of the cell's database, and the host is called again,
 * which attaches to the attempt if it is already running there.
 */
export function beginBuild(selection: number, past: readonly PastAttempt[]): BuildStep {
  return { state: { kind: "preparing", selection, past }, effects: [{ kind: "call-host", selection }] };
}

/**
 * One step. Events about another selection than the present one, and events for which the state does not wait, change nothing, because
 * every message may be late or repeated.
 */
export function stepBuild(plan: BuildHosts, state: BuildState, event: BuildEvent): BuildStep {
  if (state.kind === "ended") return unchanged(state);
  if (event.kind === "fenced") return fence(state);
  switch (state.kind) {
    case "preparing":
      return stepPreparing(plan, state, event);
    case "settling":
      if (event.kind === "active-committed") return activate(state);
      return event.kind === "active-refused" ? refuse(plan, state, event.reason) : unchanged(state);
    case "hopping":
      return stepHopping(plan, state, event);
    case "failing":
      return event.kind === "error-committed" ? fail(state) : unchanged(state);
    default:
      return state satisfies never;
  }
}

type StateOf<Kind extends BuildState["kind"]> = Extract<BuildState, { kind: Kind }>;

const unchanged = (state: BuildState): BuildStep => ({ state, effects: [] });

/**
 * preparing → preparing (the host is back and is called again), settling (prepared), hopping or failing (the attempt failed, or the host
 * could not be called).
 */
function stepPreparing(plan: BuildHosts, state: StateOf<"preparing">, event: BuildEvent): BuildStep {
  if (!("selection" in event) || event.selection !== state.selection) return unchanged(state);
  switch (event.kind) {
    case "host-connected":
      return { state, effects: [{ kind: "call-host", selection: state.selection }] };
    case "prepared":
      return {
        state: { ...state, kind: "settling" },
        effects: [{ kind: "commit-active", selection: state.selection }],
      };
    case "failed":
      if (event.failure === "abort") return abort(plan, state, event.reason);
      return leave(plan, { ...hopFrom(state), reason: event.reason, result: "failed" });
    case "uncalled":
      return leave(plan, { ...hopFrom(state), reason: event.reason, result: "skipped" });
    default:
      return event satisfies never;
  }
}

/** hopping → preparing on the alternate or, when the alternate is too full, hopping to the next one or failing. */
function stepHopping(plan: BuildHosts, state: StateOf<"hopping">, event: BuildEvent): BuildStep {
  const { from, to, reason, result, past } = state;
  if (event.kind === "hop-skipped") {
    const skipped: PastAttempt = { selection: to, host: hostOf(plan, to), result: "skipped", reason: event.why };
    return leave(plan, { from, to: to + 1, reason, result, past: [...past, skipped] });
  }
  if (event.kind !== "hop-committed") return unchanged(state);
  const left: PastAttempt = { selection: from, host: hostOf(plan, from), result, reason };
  return {
    state: { kind: "preparing", selection: to, past: [...past, left] },
    effects: [
      { kind: "destroy-guest", selection: from },
      { kind: "tell-attempt-failed", selection: from, reason },
      { kind: "call-host", selection: to },
    ],
  };
}

type LeftHost = Omit<StateOf<"hopping">, "kind">;

const hopFrom = ({ selection, past }: StateOf<"preparing">): Pick<LeftHost, "from" | "to" | "past"> => ({
  from: selection,
  to: selection + 1,
  past,
});

/** preparing | hopping → hopping to the alternate `to` or one after it, or → failing when there is none left. */
function leave(plan: BuildHosts, hop: LeftHost): BuildStep {
  const { from, reason, result, past } = hop;
  const to = nextSelection(plan, hop);
  if (to < plan.hosts.length) {
    return {
      state: { kind: "hopping", from, to, reason, result, past },
      effects: [{ kind: "hop", from, to, reason, result }],
    };
  }
  const last: PastAttempt = { selection: from, host: hostOf(plan, from), result, reason };
  const message = exhaustedBuildMessage([...past, last], untriedOf(plan, [...past, last]));
  return {
    state: { kind: "failing", selection: from, failure: "reschedule", reason, message },
    effects: [{ kind: "commit-error", selection: from, attemptReason: reason, message }],
  };
}

/** The hosts that the limit of attempts left untried. Null when it was not reached: then there was no other host. */
function untriedOf({ hosts, attemptsMax = 0 }: BuildHosts, past: readonly PastAttempt[]): readonly string[] | null {
  const attempts = past.filter(({ result }) => result === "failed").length;
  if (attemptsMax === 0 || attempts < attemptsMax) return null;
  const known = new Set(past.map(({ host }) => host));
  return [...new Set(hosts)].filter((host) => !known.has(host));
}

/** The next selection from `to` onwards that may be tried, or the length of the list when there is none. */
function nextSelection({ hosts, attemptsMax = 0 }: BuildHosts, { from, to: first, result, past }: LeftHost): number {
  const failed = past.filter((one) => one.result === "failed").map(({ host }) => host);
  const attempts = failed.length + (result === "failed" ? 1 : 0);
  if (attemptsMax > 0 && attempts >= attemptsMax) return hosts.length;
  const rounds = hosts.filter((host) => host === hosts[0]).length;
  const again = hosts.indexOf(hosts[0] ?? "", 1);
  const mayRepeat = attempts < rounds;
  for (let to = first; to < hosts.length; to += 1) {
    const isHere = hosts[to] === hosts[from];
    const isFresh = again === -1 || to < again;
    // Another way to fit does not help on a host that failed.
    if (isFresh ? !isHere && !failed.includes(hosts[to] ?? "") : isHere && mayRepeat) return to;
  }
  return hosts.length;
}

/** preparing → failing: no other host could succeed, so none is tried. */
function abort(plan: BuildHosts, state: StateOf<"preparing">, reason: string): BuildStep {
  const { selection, past } = state;
  const message = abortedBuildMessage(past, { selection, host: hostOf(plan, selection), result: "failed", reason });
  return {
    state: { kind: "failing", selection, failure: "abort", reason, message },
    effects: [{ kind: "commit-error", selection, attemptReason: reason, message }],
  };
}

/** settling → ended (active): only now may the guest run. */
function activate(state: StateOf<"settling">): BuildStep {
  const { selection } = state;
  return {
    state: { kind: "ended", as: "active" },
    effects: [
      { kind: "start-guest", selection },
      { kind: "tell-active", selection },
    ],
  };
}

/** settling → failing: the guest must not start, so it is destroyed. */
function refuse(plan: BuildHosts, { selection, past }: StateOf<"settling">, reason: string): BuildStep {
  const message = refusedBuildMessage(past, { selection, host: hostOf(plan, selection), result: "failed", reason });
  return {
    state: { kind: "failing", selection, failure: "abort", reason, message },
    effects: [{ kind: "commit-error", selection, attemptReason: reason, message }],
  };
}

/** failing → ended (error). A failure that no host could avoid does not count against the host. */
function fail(state: StateOf<"failing">): BuildStep {
  const { selection, failure, reason, message } = state;
  const blame: BuildEffect[] = failure === "reschedule" ? [{ kind: "tell-attempt-failed", selection, reason }] : [];
  return {
    state: { kind: "ended", as: "error" },
    effects: [{ kind: "destroy-guest", selection }, ...blame, { kind: "tell-error", selection, message }],
  };
}

/** (any) → ended (fenced): another conductor may have made the guest the server's home, so it must not simply be destroyed. */
function fence(state: Exclude<BuildState, StateOf<"ended">>): BuildStep {
  const selection = state.kind === "hopping" ? state.from : state.selection;
  return { state: { kind: "ended", as: "fenced" }, effects: [{ kind: "settle-guest", selection }] };
}

function hostOf(plan: BuildHosts, selection: number): string {
  return plan.hosts[selection] ?? `selection ${selection}`;
}
