import { assert } from "../../../core/assert.ts";
import type { Holding } from "../../../core/ledger/holding.ts";
import type { AnswerTo, PlacingQuestion } from "../../../core/placing/placing.ts";
import { awaitsGroup } from "../../../core/scheduling/filters/group-members.ts";
import type { HostRequest } from "../../../core/scheduling/host-request.ts";
import { describeRequestRefusal } from "../../../core/scheduling/request/request-refusal.ts";
import type { BeginOutcome } from "../../../core/stores/cell/operation-store.ts";
import { GUEST_IN_QUARANTINE } from "../../../core/stores/cell/quarantine.ts";
import { hostInUse, unfencedHost } from "../../../core/tasks/evacuation-rule.ts";
import { type OperationKind, operationKind } from "../../../core/tasks/operation-kinds.ts";
import type { BeginOperation } from "../../../core/tasks/operation-step.ts";
import { type PlannedOperation, planOperation } from "../../../core/tasks/plan-operation.ts";
import type { Server } from "../../../core/tasks/server.ts";
import type { MoveRequest } from "../../../proto/gen/berth/scheduler.ts";
import type { Selection, ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { nextTurn } from "../../../runtime/next-turn.ts";
import type { CellMoves } from "../cells/cell-moves.ts";
import { HostSearch } from "./host-search.ts";
import type { MoveWrites } from "./move-writes.ts";
import { inZoneOf, itemsOfSelection } from "./plan-build.ts";
import type { PlacingAnswers } from "./run-placing.ts";
import type { SchedulerViews } from "./scheduler-views.ts";

type MoveQuestion =
  | "read-server"
  | "choose"
  | "pause"
  | "look-again"
  | "mark-asked"
  | "claim"
  | "note-begun"
  | "ask-cell"
  | "refuse-unasked"
  | "refuse";
type Asked<Kind extends MoveQuestion> = Extract<PlacingQuestion, { readonly kind: Kind }>;
type Unplaceable = Extract<AnswerTo<"mark-asked">, { readonly kind: "unplaceable" }>;

/** The server as it was when its cell was last asked. */
interface ReadServer {
  readonly kind: OperationKind;
  readonly server: Server;
  readonly holding: Holding | null;
  /** The server's spec after the move. */
  readonly after: ServerSpec;
  readonly search: HostSearch;
}

/** Answers the questions about one moving server: asks its cell, and writes to the move's row. */
export class MoveAnswers implements PlacingAnswers<MoveQuestion> {
  readonly #parts: { readonly views: SchedulerViews; readonly rows: MoveWrites; readonly newId: () => string };
  readonly #move: MoveRequest;
  readonly #unseenMs: number;
  #read: ReadServer | null = null;
  #selections: readonly Selection[] = [];
  #begin: BeginOperation | null = null;

  /** `unseenMs`: how long a host must have been unseen to be evacuated. */
  constructor(
    parts: { readonly views: SchedulerViews; readonly rows: MoveWrites; readonly newId: () => string },
    of: { readonly move: MoveRequest; readonly unseenMs: number },
  ) {
    this.#parts = parts;
    this.#move = of.move;
    this.#unseenMs = of.unseenMs;
  }

  /** The operation that the cell has begun, once it has. */
  get begun(): BeginOperation {
    assert(this.#begin !== null, "the cell was asked to begin nothing");
    return this.#begin;
  }

  async "read-server"(): Promise<AnswerTo<"read-server">> {
    const move = this.#move;
    const home = this.#home();
    if (home === null) return this.#awayNow();
    const kind = operationKind(move.kind);
    if (kind === null) return never(`This version knows no operation ${move.kind}.`);
    const { server, holding } = await home.server(move.serverUuid);
    if (server === null || server.status === "DELETED") return never("The server was deleted.");
    const { after, spec } = specsOf(move, server);
    const read = this.#parts.views.translationOf(spec);
    if (read?.kind !== "host-request") return never(read ? describeRequestRefusal(read) : "The server has no flavor.");
    const hostRequest: HostRequest = read.hostRequest;
    this.#read = { kind, server, holding, after, search: new HostSearch(spec, hostRequest) };
    return { kind: "server-read", leftOut: hostsLeftOut(move, server) };
  }

  choose({ learnt }: Asked<"choose">): AnswerTo<"choose"> {
    const { search, holding } = this.#readServer();
    const link = this.#parts.views.cells.get(this.#move.cell);
    if (link === undefined) return this.#awayNow();
    const choice = this.#parts.views.chooser.chooseWithin(search, learnt, link, this.#released(holding));
    if (choice.kind === "paused") return { kind: "paused" };
    if (choice.kind === "none")
      return { kind: "none", choice, leftOut: [], awaitsGroup: awaitsGroup(choice.refusals), ageMs: 0 };
    const [first] = choice.selections;
    assert(first !== undefined, "a choice names its host first");
    this.#selections = choice.selections;
    const { newId } = this.#parts;
    return {
      kind: "chosen",
      claim: { id: newId(), cell: link.name, host: first.host, items: itemsOfSelection(first) },
    };
  }

  async pause(): Promise<AnswerTo<"pause">> {
    await nextTurn();
    return { kind: "resumed" };
  }

  /** The cell's answers come first, because a host may be full because this very move was begun and the answer was lost. */
  async "look-again"(): Promise<AnswerTo<"look-again">> {
    const link = this.#parts.views.cells.get(this.#move.cell);
    if (link === undefined) return this.#awayNow();
    try {
      await this.#parts.views.whenSeen(link);
    } catch {
      return { kind: "cannot-yet", why: `the view of cell ${link.name} does not catch up` };
    }
    return { kind: "looked", unseen: [] };
  }

  async "mark-asked"(): Promise<AnswerTo<"mark-asked">> {
    const { id, requestId, userId, projectId, fenceWaived } = this.#move;
    const { kind, server, holding, after } = this.#readServer();
    const planned = planOperation({
      taskId: id,
      ...{ kind, server, holding, after, fenceWaived },
      selections: inZoneOf(after, this.#selections),
      unseenMs: this.#unseenMs,
      askedBy: { requestId, userId, projectId },
    });
    if (planned.kind !== "planned") return describeNotPlanned(kind, planned);
    this.#begin = planned.begin;
    return (await this.#parts.rows.markAsked(id)) ? { kind: "marked" } : { kind: "over" };
  }

  async claim({ claim: { cell } }: Asked<"claim">): Promise<AnswerTo<"claim">> {
    const moves = this.#parts.views.cells.get(cell)?.moves ?? null;
    assert(moves !== null, `a host of cell ${cell} was chosen, whose servers are not moved from here`);
    return this.#afterBegin(await moves.begin(this.begun));
  }

  async "note-begun"(): Promise<AnswerTo<"note-begun">> {
    await this.#parts.rows.end({ id: this.#move.id, state: "begun", fault: null });
    return { kind: "noted" };
  }

  async "ask-cell"(): Promise<AnswerTo<"ask-cell">> {
    const { id, cell } = this.#move;
    const home = this.#home();
    if (home === null) return this.#awayNow();
    return (await home.hasMigration(id)) ? { kind: "found", cell } : { kind: "not-begun" };
  }

  async "refuse-unasked"({ fault }: Asked<"refuse-unasked">): Promise<AnswerTo<"refuse-unasked">> {
    const isRefused = await this.#parts.rows.giveUp(this.#move.id, fault);
    return { kind: isRefused ? "refused" : "may-have-begun" };
  }

  async refuse({ fault }: Asked<"refuse">): Promise<AnswerTo<"refuse">> {
    await this.#parts.rows.end({ id: this.#move.id, state: "refused", fault });
    return { kind: "refused" };
  }

  #afterBegin(outcome: BeginOutcome): AnswerTo<"claim"> {
    const source = this.#readServer().server.host ?? "its host";
    switch (outcome.kind) {
      case "begun":
        return { kind: "claimed", xid: outcome.xid };
      case "already-begun":
        return { kind: "found", cell: this.#move.cell };
      case "changed":
        return { kind: "server-changed" };
      case "busy":
        return never(`Another operation is under way: ${outcome.running}.`);
      case "gone":
        return never("The server was deleted.");
      case "closed":
        return never("The move was given up before it began.");
      case "host-seen":
        return never(hostInUse(source));
      case "host-unfenced":
        return never(unfencedHost(source));
      case "quarantined":
        return never(`The server cannot be moved: ${GUEST_IN_QUARANTINE}.`);
      case "no-capacity":
        return { kind: "lost", why: outcome.kind, inFlight: false, shortfalls: outcome.shortfalls };
      case "refused":
        return { kind: "lost", why: outcome.why, inFlight: outcome.inFlight, shortfalls: [] };
      case "stale":
        return { kind: "lost", why: outcome.why, inFlight: false, shortfalls: [] };
      default:
        return outcome satisfies never;
    }
  }

  /** The moves of the server's cell, or null when the cell cannot be asked now. */
  #home(): CellMoves | null {
    const link = this.#parts.views.cells.get(this.#move.cell);
    return link?.answers ? link.moves : null;
  }

  #awayNow(): Extract<AnswerTo<"ask-cell">, { readonly kind: "cannot-yet" }> {
    const { cell } = this.#move;
    const isReached = this.#parts.views.cells.get(cell)?.answers;
    const why = isReached ? `this scheduler moves no servers of cell ${cell}` : `its cell ${cell} cannot be reached`;
    return { kind: "cannot-yet", why };
  }

  #readServer(): ReadServer {
    assert(this.#read !== null, "the server is read before a host is chosen for it");
    return this.#read;
  }

  /** For a resize that may stay on its host: the server's present allocation there, which counts as free for it. */
  #released(holding: Holding | null): Holding["items"] {
    return this.#move.kind === "resize" && this.#move.sameHostAllowed ? (holding?.items ?? []) : [];
  }
}

function never(fault: string): Unplaceable {
  return { kind: "unplaceable", fault, mayHaveBegun: false };
}

/** Why the operation does not fit the server's present state. It may be this very move that is running. */
function describeNotPlanned(kind: OperationKind, planned: Exclude<PlannedOperation, { kind: "planned" }>): Unplaceable {
  switch (planned.kind) {
    case "busy":
      return { ...never(`Another operation is under way: ${planned.running}.`), mayHaveBegun: true };
    case "wrong-status": {
      const fault = `The server is now ${planned.status}; ${kind} is allowed for ${planned.allowed.join(", ")}.`;
      return { ...never(fault), mayHaveBegun: true };
    }
    case "nothing-to-confirm":
      return never("There is nothing to confirm.");
    default:
      return planned satisfies never;
  }
}

/** The server's spec after the move, and the spec for which a host is searched. */
function specsOf(move: MoveRequest, server: Server): { readonly after: ServerSpec; readonly spec: ServerSpec } {
  const after = {
    ...server.spec,
    ...(move.flavor !== undefined && { flavor: move.flavor }),
    ...(move.changesZone && { availabilityZone: move.availabilityZone }),
  };
  // A host that was forced at the boot no longer counts; the one that this move names does.
  const place = { forcedHost: move.forced ? move.host : "", requestedHost: move.forced ? "" : move.host };
  return { after, spec: { ...after, ...place } };
}

/** The server does not move to its present host, unless only its flavor may change there. */
function hostsLeftOut(move: MoveRequest, server: Server): ReadonlyMap<string, ReadonlySet<string>> {
  const stays = server.host === null || (move.kind === "resize" && move.sameHostAllowed);
  return new Map(stays ? [] : [[move.cell, new Set([server.host])]]);
}
