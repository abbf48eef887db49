import { assert } from "../../../core/assert.ts";
import { claim } from "../../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../../core/ledger/ids.ts";
import { CONSUMER_TYPE_INSTANCE } from "../../../core/ledger/model.ts";
import type { AnswerTo, Learnt, PlacingQuestion, ReservedClaim } from "../../../core/placing/placing.ts";
import { awaitsGroup } from "../../../core/scheduling/filters/group-members.ts";
import type { HostChoice, HostWeight } from "../../../core/scheduling/host-chooser.ts";
import { GUEST_IN_QUARANTINE } from "../../../core/stores/cell/quarantine.ts";
import type { Task } from "../../../proto/gen/berth/cell.ts";
import type { Selection, ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { nextTurn } from "../../../runtime/next-turn.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { HostSearch } from "./host-search.ts";
import type { ChosenTogether } from "./placement.ts";
import type { PlacingParts } from "./placing-parts.ts";
import { buildTask, itemsOfSelection } from "./plan-build.ts";
import type { PlacingAnswers } from "./run-placing.ts";

type BootQuestion =
  | "choose"
  | "pause"
  | "look-again"
  | "join"
  | "leave-cell"
  | "pin-group"
  | "assign"
  | "claim"
  | "refuse";
type Asked<Kind extends BootQuestion> = Extract<PlacingQuestion, { readonly kind: Kind }>;

/** The last chosen host, with the data for the claim and for the record of the decision. */
interface ChosenHost {
  readonly choice: Extract<HostChoice, { readonly kind: "chosen" }>;
  /** Null when weights are not recorded. */
  readonly weights: readonly HostWeight[] | null;
  /** For a multi-create, the alternates are chosen after the hosts of all its servers. */
  readonly selections: readonly Selection[];
}

/** Answers the questions about one new server: reads the views, and writes to the API database and to the cells. */
export class BootAnswers implements PlacingAnswers<BootQuestion> {
  readonly #parts: PlacingParts;
  readonly #attemptsMax: number;
  readonly #search: HostSearch;
  readonly #agedMs: () => number;
  readonly #together: ChosenTogether | null;
  #chosen: ChosenHost | null = null;
  #task: Task | null = null;

  constructor(
    parts: PlacingParts,
    of: {
      readonly search: HostSearch;
      readonly agedMs: () => number;
      readonly together: ChosenTogether | null;
      readonly attemptsMax: number;
    },
  ) {
    this.#parts = parts;
    this.#attemptsMax = of.attemptsMax;
    this.#search = of.search;
    this.#agedMs = of.agedMs;
    this.#together = of.together;
  }

  /** The claimed host, once there is one. */
  get placed(): ChosenHost & { readonly task: Task } {
    assert(this.#chosen !== null && this.#task !== null, "nothing was claimed");
    return { ...this.#chosen, task: this.#task };
  }

  choose({ learnt }: Asked<"choose">): AnswerTo<"choose"> {
    const { views, decisions, newId } = this.#parts;
    const { at, isLeft } = learnt;
    if (at !== null && !isLeft && !views.cells.get(at)?.answers) {
      return { kind: "cannot-yet", why: `its assigned cell ${at} cannot be reached` };
    }
    const links = views.cells.all();
    const choice = views.chooser.choose(this.#search, learnt, links);
    if (choice.kind === "paused") return { kind: "paused" };
    if (choice.kind === "none") {
      const leftOut = unsearched(learnt, links);
      return { kind: "none", choice, leftOut, awaitsGroup: awaitsGroup(choice.refusals), ageMs: this.#agedMs() };
    }
    const { cell, selections } = choice;
    const [first] = selections;
    assert(first !== undefined, "a choice names its host first");
    this.#chosen = { choice, selections, weights: decisions.weightsOf(choice) };
    return { kind: "chosen", claim: { id: newId(), cell, host: first.host, items: itemsOfSelection(first) } };
  }

  async pause(): Promise<AnswerTo<"pause">> {
    await nextTurn();
    return { kind: "resumed" };
  }

  async "look-again"({ shut }: Asked<"look-again">): Promise<AnswerTo<"look-again">> {
    const { views } = this.#parts;
    const open = views.cells.all().filter((link) => !link.disabled && !shut.has(link.name));
    const unseen = await views.look(open);
    const read = views.translationOf(this.#search.spec);
    if (read?.kind === "host-request") this.#search.hostRequest = read.hostRequest;
    return { kind: "looked", unseen };
  }

  async join({ claim, learnt }: Asked<"join">): Promise<AnswerTo<"join">> {
    await this.#together?.choose(claim.cell, claim.host);
    const chosen = this.#chosenHost();
    const alternates = this.#parts.views.chooser.alternatesOf(
      this.#search,
      learnt,
      this.#linkOf(claim.cell),
      claim.host,
    );
    this.#chosen = { ...chosen, selections: [...chosen.selections.slice(0, 1), ...alternates] };
    return { kind: "joined" };
  }

  async "leave-cell"({ cell, assignment }: Asked<"leave-cell">): Promise<AnswerTo<"leave-cell">> {
    const link = this.#parts.views.cells.get(cell);
    if (!link) return { kind: "cannot-yet", why: `its assigned cell ${cell} is not known to this scheduler` };
    const shut = await link.shut({ serverUuid: this.#search.spec.uuid, assignment });
    if (shut === "quarantined") return { kind: "unplaceable", fault: quarantinedIn(cell), mayHaveBegun: false };
    return shut === "present" ? { kind: "found", cell } : { kind: "cell-left" };
  }

  async "pin-group"({ cell }: Asked<"pin-group">): Promise<AnswerTo<"pin-group">> {
    const { group, uuid } = this.#search.spec;
    if (group === undefined) return { kind: "pinned" };
    const pin = await this.#parts.groups.pinCell({ groupUuid: group.uuid, serverUuid: uuid, cell });
    return pin.kind === "pinned" ? pin : { kind: "pinned-elsewhere", cell: pin.cell };
  }

  async assign({ from, to, assignment, next }: Asked<"assign">): Promise<AnswerTo<"assign">> {
    const outcome = await this.#parts.requests.assign({
      serverUuid: this.#search.spec.uuid,
      from,
      to,
      assignment,
      next,
    });
    switch (outcome.kind) {
      case "assigned":
        return { kind: "assigned" };
      case "moved":
        return { kind: "assigned-elsewhere", cell: outcome.cell, assignment: outcome.assignment };
      case "ended":
        return { kind: "over" };
      default:
        return outcome satisfies never;
    }
  }

  async claim({ claim: held, assignment }: Asked<"claim">): Promise<AnswerTo<"claim">> {
    const { clock, events } = this.#parts;
    const { spec } = this.#search;
    const { selections } = this.#chosenHost();
    const task = buildTask(held.id, spec, { selections, attemptsMax: this.#attemptsMax });
    this.#task = task;
    const askedAtMs = clock.monotonic();
    const outcome = await this.#linkOf(held.cell).dispatch({ task, change: changeOf(spec, held), assignment });
    events.claimed(clock.monotonic() - askedAtMs);
    switch (outcome.kind) {
      case "dispatched":
        return { kind: "claimed", xid: outcome.xid };
      case "already-dispatched":
        return { kind: "found", cell: held.cell };
      case "closed":
      case "group-conflict":
        return outcome;
      case "quarantined":
        return { kind: "unplaceable", fault: quarantinedIn(held.cell), mayHaveBegun: false };
      case "consumer-taken": {
        const fault = `Another client has allocations under this server's id: ${outcome.why}.`;
        return { kind: "unplaceable", fault, mayHaveBegun: false };
      }
      case "write-refused":
        events.writeRefused(held.cell, outcome.why);
        return { kind: "write-refused" };
      case "no-capacity":
        return { kind: "lost", why: outcome.kind, inFlight: false, shortfalls: outcome.shortfalls };
      case "stale":
        return { kind: "lost", why: outcome.kind, inFlight: false, shortfalls: [] };
      default:
        return outcome satisfies never;
    }
  }

  async refuse({ cell, assignment, fault }: Asked<"refuse">): Promise<AnswerTo<"refuse">> {
    const record = await this.#parts.requests.fail({ serverUuid: this.#search.spec.uuid, cell, assignment, fault });
    switch (record?.state) {
      case "failed":
        return { kind: "refused" };
      case "accepted":
      case "dispatched":
        return { kind: "taken-over", cell: record.cell, assignment: record.assignment };
      default:
        return { kind: "over" };
    }
  }

  #chosenHost(): ChosenHost {
    assert(this.#chosen !== null, "a host is chosen before it is claimed");
    return this.#chosen;
  }

  #linkOf(cell: string): CellLink {
    const link = this.#parts.views.cells.get(cell);
    assert(link !== undefined, `cell ${cell} was chosen but is not known`);
    return link;
  }
}

function changeOf({ uuid, projectId, userId }: ServerSpec, { items }: ReservedClaim) {
  return claim(consumerUuid(uuid), { projectId, userId, type: CONSUMER_TYPE_INSTANCE }, items);
}

/** Describes the cells that may have room and were not searched: silent ones, and those whose databases refuse to write, with the reason. */
function unsearched({ shut }: Learnt, links: readonly CellLink[]): string[] {
  if (links.length === 0) return ["any (none is connected yet)"];
  return links.flatMap(({ name, disabled, answers, refusesWrites: why }) => {
    if (disabled || shut.has(name)) return [];
    if (!answers) return [name];
    return why === null
      ? []
      : [`${name} (its database refuses to write: ${why}; if its disk is full, free space there)`];
  });
}

const quarantinedIn = (cell: string): string => `In cell ${cell} ${GUEST_IN_QUARANTINE}.`;
