import { abortedBuildMessage, exhaustedBuildMessage, type PastAttempt } from "./failure-message.ts";

/**
 * Why an attempt failed, as far as what comes next goes: `reschedule` - another host may do better; `abort` - no host
 * can build this (Nova's RescheduledException and BuildAbortException).
 */
export type AttemptFailure = "reschedule" | "abort";

/**
 * The hosts of the plan in the order they are tried; the first holds the claim when the task is stored. A host that comes several
 * times, one after the other, is there with other ways to fit: the next one is for the case that the one before no longer fits.
 * When the first host comes again later, a round of repetitions begins there: none of them is tried but the host that failed last, as
 * long as there were fewer attempts than rounds, for nobody else can have its place when all others are full.
 */
export interface BuildHosts {
  readonly hosts: readonly string[];
  /** Attempts that may be made, however many hosts there are; 0 or none: one on each. A host that was never called is none. */
  readonly attemptsMax?: number;
}

/**
 * Where a build is. Exactly one selection holds the server's allocation at any time, and it is `selection` (or `from`
 * while a hop is under way).
 */
export type BuildState =
  /** The host of `selection` prepares the guest. */
  | { readonly kind: "preparing"; readonly selection: number; readonly past: readonly PastAttempt[] }
  /** The guest is prepared; the cell's database is being told that this is the server's home. */
  | { readonly kind: "settling"; readonly selection: number; readonly past: readonly PastAttempt[] }
  /** The claim is being swapped from the failed `from` to the alternate `to`. */
  | {
      readonly kind: "hopping";
      readonly from: number;
      readonly to: number;
      readonly reason: string;
      /** Of `from`. */
      readonly result: PastAttempt["result"];
      readonly past: readonly PastAttempt[];
    }
  /** The end is being written: ERROR, nothing held. */
  | {
      readonly kind: "failing";
      readonly selection: number;
      readonly failure: AttemptFailure;
      readonly reason: string;
      readonly message: string;
    }
  /** `fenced`: another conductor has the task, or it was cancelled. */
  | { readonly kind: "ended"; readonly as: "active" | "error" | "fenced" };

export type BuildEvent =
  /** The host is connected (again) and has not heard of the attempt over this connection. */
  | { readonly kind: "host-connected"; readonly selection: number }
  | { readonly kind: "prepared"; readonly selection: number }
  /** By the host's own word, or because it is gone or took too long. */
  | { readonly kind: "failed"; readonly selection: number; readonly failure: AttemptFailure; readonly reason: string }
  /** The host could not be called, and was not: it is passed over. */
  | { readonly kind: "uncalled"; readonly selection: number; readonly reason: string }
  | { readonly kind: "active-committed" }
  | { readonly kind: "hop-committed" }
  | { readonly kind: "hop-skipped"; readonly why: string }
  | { readonly kind: "error-committed" }
  | { readonly kind: "fenced" };

/** What is to be done. Each may be done twice: calls name their attempt, and commits are fenced by the task's epoch. */
export type BuildEffect =
  | { readonly kind: "call-host"; readonly selection: number }
  | { readonly kind: "commit-active"; readonly selection: number }
  /** `result`: of `from`. */
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
  /** Nobody here knows whose the guest is now: ask the cell's database, then start it, destroy it, or leave it alone. */
  | { readonly kind: "settle-guest"; readonly selection: number }
  | { readonly kind: "tell-active"; readonly selection: number }
  | { readonly kind: "tell-attempt-failed"; readonly selection: number; readonly reason: string }
  | { readonly kind: "tell-error"; readonly selection: number; readonly message: string };

export interface BuildStep {
  readonly state: BuildState;
  readonly effects: readonly BuildEffect[];
}

/**
 * (taken) → preparing. Also after a crash: `selection` and `past` are what the cell's database says then, and the host is
 * called again, which attaches to the attempt if it runs there already.
 */
export function beginBuild(selection: number, past: readonly PastAttempt[]): BuildStep {
  return { state: { kind: "preparing", selection, past }, effects: [{ kind: "call-host", selection }] };
}

/**
 * One step. Events that speak of another selection than the present one, or come in a state that does not wait for them,
 * change nothing: every message may be late and may come twice.
 */
export function stepBuild(plan: BuildHosts, state: BuildState, event: BuildEvent): BuildStep {
  if (state.kind === "ended") return unchanged(state);
  if (event.kind === "fenced") return fence(state);
  switch (state.kind) {
    case "preparing":
      return stepPreparing(plan, state, event);
    case "settling":
      return event.kind === "active-committed" ? activate(state) : unchanged(state);
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

/** preparing → preparing (the host is back: call it again), settling (prepared), hopping or failing (failed, or not there to be called). */
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

/** hopping → preparing on the alternate; or, the alternate being too full, hopping to the next one or failing. */
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
  const message = exhaustedBuildMessage([...past, last]);
  return {
    state: { kind: "failing", selection: from, failure: "reschedule", reason, message },
    effects: [{ kind: "commit-error", selection: from, attemptReason: reason, message }],
  };
}

/** The next selection from `to` on that may be tried; none: the length of the list. */
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
    // Another way to fit is of no use on a host that failed.
    if (isFresh ? !isHere && !failed.includes(hosts[to] ?? "") : isHere && mayRepeat) return to;
  }
  return hosts.length;
}

/** preparing → failing: no other host could do better, so none is tried. */
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

/** failing → ended (error). A failure that no host could avoid is not held against the host. */
function fail(state: StateOf<"failing">): BuildStep {
  const { selection, failure, reason, message } = state;
  const blame: BuildEffect[] = failure === "reschedule" ? [{ kind: "tell-attempt-failed", selection, reason }] : [];
  return {
    state: { kind: "ended", as: "error" },
    effects: [{ kind: "destroy-guest", selection }, ...blame, { kind: "tell-error", selection, message }],
  };
}

/** (any) → ended (fenced): the guest may be at home by another conductor's hand, so it must not just be destroyed. */
function fence(state: Exclude<BuildState, StateOf<"ended">>): BuildStep {
  const selection = state.kind === "hopping" ? state.from : state.selection;
  return { state: { kind: "ended", as: "fenced" }, effects: [{ kind: "settle-guest", selection }] };
}

function hostOf(plan: BuildHosts, selection: number): string {
  return plan.hosts[selection] ?? `selection ${selection}`;
}
