import type { DispatchOutcome } from "../../core/cell/cell-store.ts";
import type { GroupConflict } from "../../core/cell/group-rule.ts";
import { bareSpec } from "../../core/cell/server-spec.ts";
import { SPEC_BYTES_MAX } from "../../core/cell/spec-limits.ts";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import { type AllocationItem, CONSUMER_TYPE_INSTANCE } from "../../core/ledger/model.ts";
import type { HostChoice } from "../../core/scheduling/choose-hosts.ts";
import type { DecisionEffort } from "../../core/scheduling/explain/decision.ts";
import { sumFunnels } from "../../core/scheduling/explain/funnel.ts";
import { awaitsGroup } from "../../core/scheduling/filters/group-members.ts";
import type { PlacementQuery } from "../../core/scheduling/placement-query.ts";
import { PLAIN_CONTEXT, type RequestContext } from "../../core/scheduling/request/request-context.ts";
import { describeRequestRefusal } from "../../core/scheduling/request/request-refusal.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { nextTurn } from "../../runtime/next-turn.ts";
import type { CellLink } from "./cell-link.ts";
import type { RequestChooser } from "./choose-for-request.ts";
import { noValidHost } from "./describe-no-host.ts";
import type { SchedulerEvents } from "./events.ts";
import type { GroupPicks } from "./group-picks.ts";
import {
  type Company,
  type Found,
  newPlacing,
  type Placement,
  type Placing,
  type PlacingRequest,
} from "./placement.ts";
import { buildTask, itemsOfSelection } from "./plan-build.ts";
import type { SchedulerGroups } from "./ports.ts";
import { QueryCache } from "./query-cache.ts";
import type { DecisionRecorder } from "./record-decisions.ts";
import type { RequestWrites } from "./request-writes.ts";
import type { SchedulerSettings } from "./settings.ts";

/** Claims that may be lost before a request is put off. */
const TRIES_MAX = 30;
/** Tries of a request, however old, before what keeps it from being placed counts as lasting. */
const GIVE_UP_TRIES = 5;
/** Times that a view is waited for before a refusal. */
const LOOKS_MAX = 5;

/** Why a request waits for others of its server group. */
export const GROUP_IN_FLIGHT =
  "the hosts that it may have are held by servers of its group that are being built, moved or deleted";
const NOTHING_ASKED: PlacementQuery = { groups: [], groupPolicy: "none" };

type NoChoice = HostChoice & { readonly kind: "none" };

/** `null`: go on choosing. */
type Step = Placement | null;

/**
 * Places one request: choose → assign to the cell → dispatch there; what has no room leads to the next choice.
 *
 * A request may be in several hands at once, by redelivery. What keeps its server in one cell: a cell is assigned by
 * compare-and-set before anything is claimed there; within it the server's row decides; and it is left only after it was shut
 * for the server. Nothing is given up before the end is known: dispatched, ended, or failed in the API database.
 */
export class RequestPlacer {
  readonly #links: { get(name: string): CellLink | undefined; all(): CellLink[] };
  readonly #chooser: RequestChooser;
  readonly #writes: RequestWrites;
  readonly #settings: SchedulerSettings;
  readonly #clock: Clock;
  readonly #events: SchedulerEvents;
  readonly #newId: () => string;
  readonly #groupPicks: GroupPicks;
  readonly #groups: SchedulerGroups;
  readonly #onPick: (cell: string, host: string) => void;
  readonly #decisions: DecisionRecorder;
  readonly #context: () => RequestContext;
  readonly #catchUp: () => Promise<void>;
  readonly #queries = new QueryCache();

  constructor(deps: {
    readonly links: { get(name: string): CellLink | undefined; all(): CellLink[] };
    readonly chooser: RequestChooser;
    readonly writes: RequestWrites;
    readonly settings: SchedulerSettings;
    readonly clock: Clock;
    readonly events: SchedulerEvents;
    readonly newId: () => string;
    readonly groupPicks: GroupPicks;
    readonly groups: SchedulerGroups;
    /** A host was chosen and is going to be claimed. */
    readonly onPick: (cell: string, host: string) => void;
    readonly decisions: DecisionRecorder;
    /** What request filters know now: the same object as long as nothing changed. Without it no filter is on. */
    readonly context?: () => RequestContext;
    /** Resolves when what operators had set before the call is known here, or cannot be had. */
    readonly catchUp?: () => Promise<void>;
  }) {
    this.#links = deps.links;
    this.#chooser = deps.chooser;
    this.#writes = deps.writes;
    this.#settings = deps.settings;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#newId = deps.newId;
    this.#groupPicks = deps.groupPicks;
    this.#groups = deps.groups;
    this.#onPick = deps.onPick;
    this.#decisions = deps.decisions;
    this.#context = deps.context ?? (() => PLAIN_CONTEXT);
    this.#catchUp = deps.catchUp ?? (async () => {});
  }

  /**
   * Rejects when a store could not be asked: then it may be dispatched or not, and is to be tried again. What is old and keeps failing is
   * refused, unless its cell cannot be shut for it. With company it is never refused, but `unplaced`: whoever places them all decides.
   */
  async place(request: PlacingRequest, company: Company | null = null): Promise<Placement> {
    const { spec } = request;
    const read = this.#queries.of(spec, this.#context());
    const query: PlacementQuery = read?.kind === "query" ? read.query : NOTHING_ASKED;
    const placing = newPlacing(request, query, company);
    const malformed = read?.kind === "query" ? null : read ? describeRequestRefusal(read) : "the request has no flavor";
    const lasts = request.tries >= GIVE_UP_TRIES && request.agedMs() >= this.#settings.giveUpMs;
    try {
      const placement = await this.#tryToPlace(placing, malformed);
      if (placement.kind !== "later" || !lasts) return placement;
      return (await this.#refuse(placing, this.#gaveUp(placement.why))) ?? placement;
    } catch (error) {
      if (!lasts) throw error;
      const why = "a database that it needs failed each time";
      // Rejects in its turn as long as nobody knows whether it was dispatched.
      const refused = await this.#refuse(placing, this.#gaveUp(why));
      this.#events.gaveUp(spec.uuid, error);
      return refused ?? { kind: "later", why };
    }
  }

  /** Says in the API database that it is nowhere placed, unless it was meanwhile. Rejects as `place` does. */
  refuse(spec: ServerSpec, fault: string): Promise<Placement> {
    return this.#tryToPlace(newPlacing({ spec, cell: null, agedMs: () => 0 }, NOTHING_ASKED, null), fault);
  }

  /** Refuses a request whose spec is too large to be read. Rejects as `place` does. */
  async refuseTooLarge(request: {
    readonly serverUuid: string;
    readonly specBytes: number;
  }): Promise<{ readonly spec: ServerSpec; readonly placement: Placement }> {
    const { serverUuid, specBytes } = request;
    const fault =
      `The request is ${specBytes} bytes large; at most ${SPEC_BYTES_MAX} can be placed. Delete the server and ask again with fewer or ` +
      "shorter scheduler hints, metadata or image properties.";
    const spec = bareSpec(serverUuid);
    return { spec, placement: await this.refuse(spec, fault) };
  }

  async #tryToPlace(placing: Placing, malformed: string | null): Promise<Placement> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const step = malformed === null ? await this.#tryOnce(placing) : await this.#refuse(placing, malformed);
      if (step) return step;
    }
    return { kind: "later", why: `lost ${TRIES_MAX} claims to others` };
  }

  #gaveUp(why: string): string {
    return `The request was given up after ${Math.round(this.#settings.giveUpMs / 60_000)} minutes: ${why}.`;
  }

  async #tryOnce(placing: Placing): Promise<Step> {
    const { at } = placing;
    const home = at === null ? undefined : this.#links.get(at);
    if (at !== null && !placing.shut.has(at) && !home?.answers) {
      return { kind: "later", why: `cell ${at}, which it is assigned to, cannot be reached` };
    }
    const links = this.#links.all();
    const choice = this.#chooser.choose(placing, links);
    if (choice.kind === "paused") {
      await nextTurn();
      return null;
    }
    // Before anything is awaited: these are the cells that this very choice has left out.
    if (choice.kind === "none") return this.#lookAgain(placing, choice, unsearched(placing, links));
    const link = this.#links.get(choice.cell);
    const [first] = choice.selections;
    if (!link || !first) return null;
    placing.tries += 1;
    const weights = this.#decisions.weightsOf(choice);
    const id = this.#newId();
    const items = itemsOfSelection(first);
    link.claims.ask(id, items);
    this.#onPick(link.name, first.host);
    this.#groupPicks.pick(placing.spec, link.name, first.host);
    let step: Step = null;
    try {
      const selections = placing.company ? await this.#beside(placing, link, first) : choice.selections;
      const task = buildTask(id, placing.spec, { selections, attemptsMax: this.#settings.attemptsMax });
      step = await this.#claim(placing, link, { task, host: first.host, items });
      if (step?.kind !== "dispatched") return step;
      if (weights) this.#decisions.placed(placing.spec, { ...choice, selections }, weights, effortOf(placing, link));
      return { ...step, found: foundIn(placing, choice) };
    } finally {
      link.claims.giveUpUnlessCommitted(id);
      if (step?.kind !== "dispatched") this.#groupPicks.drop(placing.spec);
    }
  }

  /** The chosen host with its alternates, which are chosen after the hosts of all its company. */
  async #beside(placing: Placing, link: CellLink, chosen: Selection): Promise<readonly Selection[]> {
    await placing.company?.chose(link.name, chosen.host);
    return [chosen, ...this.#chooser.alternatesOf(placing, link, chosen.host)];
  }

  /** Assigns the request to the cell and dispatches it there. */
  async #claim(
    placing: Placing,
    link: CellLink,
    plan: { readonly task: Task; readonly host: string; readonly items: readonly AllocationItem[] },
  ): Promise<Step> {
    const left = await this.#leave(placing, link.name);
    if (left) return left;
    if (await this.#isElsewhere(placing, link)) return null;
    const { serverUuid, spec } = placing;
    const assigned = await this.#writes.assign({ serverUuid, from: placing.at, to: link.name });
    if (assigned.kind === "ended") return { kind: "ended" };
    if (assigned.kind === "moved") {
      placing.at = assigned.cell;
      return null;
    }
    placing.at = link.name;
    const owner = { projectId: spec.projectId, userId: spec.userId, type: CONSUMER_TYPE_INSTANCE };
    const change = claim(consumerUuid(serverUuid), owner, plan.items);
    const askedAtMs = this.#clock.monotonic();
    const outcome = await link.dispatch({ task: plan.task, change });
    this.#events.claimed(this.#clock.monotonic() - askedAtMs);
    return this.#afterDispatch(placing, link, plan, outcome);
  }

  /** Whether its affinity group is pinned to another cell than this one, which is pinned to it otherwise. */
  async #isElsewhere(placing: Placing, link: CellLink): Promise<boolean> {
    const { spec, serverUuid } = placing;
    if (spec.group?.policy !== "affinity") return false;
    const pin = await this.#groups.pinCell({ groupUuid: spec.group.uuid, serverUuid, cell: link.name });
    if (pin.kind === "pinned") return false;
    placing.pinned = { cell: pin.cell, hosts: [] };
    placing.fresh = false;
    return true;
  }

  #afterDispatch(
    placing: Placing,
    link: CellLink,
    { task, host }: { readonly task: Task; readonly host: string },
    outcome: DispatchOutcome,
  ): Promise<Step> | Step {
    switch (outcome.kind) {
      case "dispatched":
        link.claims.commit(task.id, outcome.xid);
        return { kind: "dispatched", link, task, host };
      case "already-dispatched":
        return { kind: "present", cell: link.name };
      case "closed":
        placing.shut.add(link.name);
        return null;
      case "consumer-taken":
        return this.#refuse(placing, `Somebody else holds allocations under this server's id: ${outcome.why}.`);
      case "group-conflict":
        this.#learnGroup(placing, link, host, outcome);
        return null;
      case "no-capacity":
      case "stale": {
        if (outcome.kind === "no-capacity") {
          // First the claim itself is let go of, or it would count twice.
          link.claims.giveUpUnlessCommitted(task.id);
          link.view.learnShortfalls(outcome.shortfalls);
        }
        const hosts = placing.tried.get(link.name) ?? new Set<string>();
        placing.tried.set(link.name, hosts.add(host));
        placing.fresh = false;
        placing.lostRaces += 1;
        this.#events.raceLost(placing.serverUuid, link.name, host, outcome.kind);
        return null;
      }
      default:
        return outcome satisfies never;
    }
  }

  /** What the refusal says of the group leads to the next choice: past the hosts that are full, or to the one where the others are. */
  #learnGroup(placing: Placing, link: CellLink, host: string, conflict: GroupConflict): void {
    const { kind, policy, hosts, inFlight } = conflict;
    placing.fresh = false;
    placing.lostRaces += 1;
    placing.groupInFlight ||= inFlight;
    if (policy === "affinity") placing.pinned = { cell: link.name, hosts };
    // A group that is torn apart, or that may be when a move ends, lets nobody in anywhere: each host is tried once.
    const full = policy === "affinity" ? (hosts.length > 1 ? [host] : []) : hosts;
    const tried = placing.tried.get(link.name) ?? new Set<string>();
    placing.tried.set(link.name, new Set([...tried, ...full]));
    this.#events.raceLost(placing.serverUuid, link.name, host, kind);
  }

  /** Makes sure that it can never be dispatched any more where it is assigned, unless that is `to`. */
  async #leave(placing: Placing, to: string | null): Promise<Step> {
    const { at, serverUuid } = placing;
    if (at === null || at === to || placing.shut.has(at)) return null;
    const home = this.#links.get(at);
    if (!home) return { kind: "later", why: `cell ${at}, which it is assigned to, is not known here` };
    if ((await home.shut(serverUuid)) === "present") return { kind: "present", cell: at };
    placing.shut.add(at);
    this.#events.leftCell(serverUuid, at);
    return null;
  }

  /** What is behind must not refuse: own claims get their answers, views and operators' word catch up, and hosts that had no room may have some. */
  async #lookAgain(placing: Placing, choice: NoChoice, leftOut: readonly string[]): Promise<Step> {
    if (placing.fresh || placing.looks >= LOOKS_MAX) {
      return this.#refuseForNow(placing, choice, [...new Set([...placing.unseen, ...leftOut])]);
    }
    placing.looks += 1;
    this.#events.lookedAgain(placing.serverUuid);
    const links = this.#links.all().filter((link) => !link.disabled && !placing.shut.has(link.name));
    const caughtUp = this.#catchUp();
    const seen = await Promise.allSettled(links.map((link) => this.#waitUntilSeen(link)));
    await caughtUp;
    const read = this.#queries.of(placing.spec, this.#context());
    if (read?.kind === "query") placing.query = read.query;
    placing.unseen = links.filter((_, index) => seen[index]?.status === "rejected").map((link) => link.name);
    placing.tried.clear();
    placing.pinned = null;
    placing.groupInFlight = false;
    placing.fresh = true;
    return null;
  }

  async #waitUntilSeen(link: CellLink): Promise<void> {
    await link.claims.answered();
    await link.cell.source.waitUntilSeen(this.#settings.seenDeadlineMs);
  }

  #refuseForNow(placing: Placing, choice: NoChoice, unseen: readonly string[]): Promise<Step> | Step {
    if (unseen.length > 0 && placing.agedMs() < this.#settings.placeWithinMs) {
      return { kind: "later", why: `no host in the other cells, and no answer from ${unseen.join(", ")}` };
    }
    // Servers of one call wait for each other before any of them is built: nothing would ever settle.
    if (placing.company === null && (placing.groupInFlight || awaitsGroup(choice.refusals))) {
      return { kind: "later", why: GROUP_IN_FLIGHT };
    }
    const findMisses = () => this.#chooser.nearestTo(placing, this.#links.all());
    this.#decisions.refused(placing.spec, choice, { unseen, findMisses }, effortOf(placing, null));
    const fault = noValidHost(choice, unseen, this.#decisions.keeps ? placing.serverUuid : null);
    return this.#refuse(placing, fault, foundIn(placing, choice));
  }

  async #refuse(placing: Placing, fault: string, found?: Found): Promise<Step> {
    const left = await this.#leave(placing, null);
    if (left) return left;
    if (placing.company !== null) return { kind: "unplaced", fault, cell: placing.at, ...(found && { found }) };
    const record = await this.#writes.fail({ serverUuid: placing.serverUuid, cell: placing.at, fault });
    switch (record?.state) {
      case "failed":
        return { kind: "refused", fault, ...(found && { found }) };
      case "accepted":
      case "dispatched":
        // Another scheduler has it, in another cell than this one knew; should that one die, this one carries it on.
        placing.at = record.cell;
        placing.fresh = false;
        return null;
      default:
        return { kind: "ended" };
    }
  }
}

function effortOf({ tries, lostRaces, looks }: Placing, link: CellLink | null): DecisionEffort {
  return { tries, lostRaces, looks, viewLagMs: link?.cell.source.lagMs ?? null };
}

function foundIn({ tries, lostRaces }: Placing, choice: HostChoice): Found {
  const { steps } = sumFunnels(choice.kind === "none" ? choice.funnels : []);
  const left = new Map(steps.map((step) => [step.step, step.left]));
  return { feasible: choice.kind === "none" ? 0 : choice.feasible, left, tries, lostRaces };
}

/** Cells that may have room and were not looked at, by name. */
function unsearched({ shut }: Placing, links: readonly CellLink[]): string[] {
  if (links.length === 0) return ["any (none is open here yet)"];
  return links.filter((link) => !link.disabled && !link.answers && !shut.has(link.name)).map((link) => link.name);
}
