import { randomUUID } from "node:crypto";
import { hostInUse, unfencedHost } from "../../core/cell/evacuation-rule.ts";
import type { MoveRecord } from "../../core/cell/move-store.ts";
import type { BeginOutcome, Holding } from "../../core/cell/operation-store.ts";
import type { Server } from "../../core/cell/server.ts";
import type { HostChoice } from "../../core/scheduling/choose-hosts.ts";
import { awaitsGroup } from "../../core/scheduling/filters/group-members.ts";
import type { PlacementQuery } from "../../core/scheduling/placement-query.ts";
import type { RequestContext } from "../../core/scheduling/request/request-context.ts";
import { describeRequestRefusal } from "../../core/scheduling/request/request-refusal.ts";
import { type OperationKind, operationKind } from "../../core/tasks/operation-kinds.ts";
import { planOperation } from "../../core/tasks/plan-operation.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { MoveRequest } from "../../proto/gen/berth/scheduler.ts";
import type { Selection, ServerSpec } from "../../proto/gen/berth/shared.ts";
import { nextTurn } from "../../runtime/next-turn.ts";
import type { CellLink } from "./cell-link.ts";
import type { CellMoves } from "./cell-moves.ts";
import type { RequestChooser } from "./choose-for-request.ts";
import { noValidHost } from "./describe-no-host.ts";
import type { SchedulerEvents } from "./events.ts";
import type { MoveWrites } from "./move-writes.ts";
import { GROUP_IN_FLIGHT } from "./place-request.ts";
import { newPlacing, type Placing } from "./placement.ts";
import { inZoneOf, itemsOfSelection } from "./plan-build.ts";
import { QueryCache } from "./query-cache.ts";
import type { SchedulerSettings } from "./settings.ts";

/** Claims that may be lost before a move is put off. */
const TRIES_MAX = 30;

export type MovePlacement =
  /** The cell has the operation; the task is still to be published. */
  | { readonly kind: "begun"; readonly link: CellLink; readonly task: Task; readonly host: string }
  /** It was begun or refused before: it was delivered twice. */
  | { readonly kind: "ended" }
  /** Not begun, and said so in the API database: the server is what it was. */
  | { readonly kind: "refused"; readonly fault: string }
  /** To be tried again. */
  | { readonly kind: "later"; readonly why: string };

/** One move on its way, with what its cell said of the server. */
interface Moving extends Placing {
  readonly move: MoveRequest;
  readonly kind: OperationKind;
  readonly server: Server;
  readonly holding: Holding | null;
  /** The server as it is to be afterwards. */
  readonly after: ServerSpec;
}

/** The cell that the server lives in. */
interface Home {
  readonly link: CellLink;
  readonly moves: CellMoves;
}

/** `null`: the server is another by now; read it again. */
type Step = MovePlacement | "another-host" | null;

/**
 * Finds a host for a server that lives, in its own cell, with alternates, and begins the operation there: one transaction that gives the
 * source's allocation to the migration and claims the destination. What has no room leads to the next choice.
 *
 * A move may be in several hands at once, by redelivery: the operation has the move's id, so that the cell knows it.
 */
export class MovePlacer {
  readonly #links: { get(name: string): CellLink | undefined };
  readonly #chooser: Pick<RequestChooser, "chooseWithin">;
  readonly #writes: MoveWrites;
  readonly #settings: Pick<SchedulerSettings, "seenDeadlineMs" | "hostUnseenMs" | "giveUpMs">;
  readonly #events: SchedulerEvents;
  readonly #onPick: (cell: string, host: string) => void;
  readonly #context: () => RequestContext;
  readonly #queries = new QueryCache();

  constructor(deps: {
    readonly links: { get(name: string): CellLink | undefined };
    readonly chooser: Pick<RequestChooser, "chooseWithin">;
    readonly writes: MoveWrites;
    readonly settings: Pick<SchedulerSettings, "seenDeadlineMs" | "hostUnseenMs" | "giveUpMs">;
    readonly events: SchedulerEvents;
    /** A host was chosen and is going to be claimed. */
    readonly onPick: (cell: string, host: string) => void;
    readonly context: () => RequestContext;
  }) {
    this.#links = deps.links;
    this.#chooser = deps.chooser;
    this.#writes = deps.writes;
    this.#settings = deps.settings;
    this.#events = deps.events;
    this.#onPick = deps.onPick;
    this.#context = deps.context;
  }

  /**
   * Rejects when a store could not be asked: then it may be begun or not, and is to be tried again. What is old and keeps failing is
   * refused, unless its cell may have begun it and cannot be asked.
   */
  async place(record: MoveRecord): Promise<MovePlacement> {
    const { request: move } = record;
    const isOld = record.ageMs >= this.#settings.giveUpMs;
    try {
      const placement = await this.#tryToPlace(move);
      return placement.kind === "later" && isOld ? await this.#giveUp(move, placement) : placement;
    } catch (error) {
      if (!isOld) throw error;
      const placement = await this.#giveUp(move, { kind: "later", why: "a database that it needs failed each time" });
      if (placement.kind === "later") throw error;
      return placement;
    }
  }

  /** Nothing is refused that its cell may have begun: its own word is needed for that. */
  async #giveUp(move: MoveRequest, later: MovePlacement & { readonly kind: "later" }): Promise<MovePlacement> {
    const minutes = Math.round(this.#settings.giveUpMs / 60_000);
    const fault = `The move was given up after ${minutes} minutes: ${later.why}. The server stays as it is; ask again once that has changed.`;
    if (await this.#writes.giveUp(move.id, fault)) return { kind: "refused", fault };
    const link = this.#links.get(move.cell);
    if (!link?.answers || link.moves === null) return later;
    return (await link.moves.hasMigration(move.id)) ? this.#noteBegun(move) : this.#refuse(move, fault);
  }

  async #tryToPlace(move: MoveRequest): Promise<MovePlacement> {
    const link = this.#links.get(move.cell);
    if (!link?.answers) return { kind: "later", why: `cell ${move.cell}, where it lives, cannot be reached` };
    if (link.moves === null) return { kind: "later", why: `this scheduler moves no servers of cell ${move.cell}` };
    const kind = operationKind(move.kind);
    if (kind === null) return this.#refuse(move, `This version knows no operation ${move.kind}.`);
    for (let reads = 0; reads < TRIES_MAX; reads += 1) {
      const { server, holding } = await link.moves.server(move.serverUuid);
      if (server === null || server.status === "DELETED") return this.#refuse(move, "The server was deleted.");
      const placement = await this.#tryHosts({ link, moves: link.moves }, this.#movingOf(move, kind, server, holding));
      if (placement !== null) return placement;
    }
    return { kind: "later", why: "the server changes each time that it is looked at" };
  }

  #movingOf(move: MoveRequest, kind: OperationKind, server: Server, holding: Holding | null): Moving {
    const after = {
      ...server.spec,
      ...(move.flavor !== undefined && { flavor: move.flavor }),
      ...(move.changesZone && { availabilityZone: move.availabilityZone }),
    };
    // What was forced when the server was booted holds no longer; what this move names does.
    const place = { forcedHost: move.forced ? move.host : "", requestedHost: move.forced ? "" : move.host };
    const spec = { ...after, ...place };
    const query: PlacementQuery = { groups: [], groupPolicy: "none" };
    const placing = newPlacing({ spec, cell: move.cell, agedMs: () => 0 }, query, null);
    return { ...placing, move, kind, server, holding, after, tried: leftOut(move, server) };
  }

  async #tryHosts(at: Home, blank: Moving): Promise<MovePlacement | null> {
    const read = this.#queries.of(blank.spec, this.#context());
    if (read?.kind !== "query") {
      return this.#refuse(blank.move, read ? describeRequestRefusal(read) : "The server has no flavor.");
    }
    const moving: Moving = { ...blank, query: read.query };
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const step = await this.#tryOnce(at, moving);
      if (step !== "another-host") return step;
    }
    return { kind: "later", why: `lost ${TRIES_MAX} claims to others` };
  }

  async #tryOnce(at: Home, moving: Moving): Promise<Step> {
    const { link } = at;
    const choice = this.#chooser.chooseWithin(moving, link, releasedBy(moving));
    if (choice.kind === "paused") {
      await nextTurn();
      return "another-host";
    }
    if (choice.kind === "none") return this.#lookAgain(at, moving, choice);
    const [first] = choice.selections;
    if (!first) return "another-host";
    const claimId = randomUUID();
    link.claims.ask(claimId, itemsOfSelection(first));
    this.#onPick(link.name, first.host);
    try {
      return await this.#begin(at, moving, { claimId, selections: choice.selections, first });
    } finally {
      link.claims.giveUpUnlessCommitted(claimId);
    }
  }

  async #begin(
    { link, moves }: Home,
    moving: Moving,
    chosen: { readonly claimId: string; readonly selections: readonly Selection[]; readonly first: Selection },
  ): Promise<Step> {
    const { move, kind, server, holding, after } = moving;
    const planned = planOperation({
      taskId: move.id,
      kind,
      server,
      holding,
      selections: inZoneOf(after, chosen.selections),
      after,
      fenceWaived: move.fenceWaived,
      unseenMs: this.#settings.hostUnseenMs,
      askedBy: { requestId: move.requestId, userId: move.userId, projectId: move.projectId },
    });
    switch (planned.kind) {
      case "planned":
        if (!(await this.#writes.markAsked(move.id))) return { kind: "ended" };
        return this.#afterBegin(
          link,
          moving,
          { ...chosen, task: planned.begin.task },
          await moves.begin(planned.begin),
        );
      case "busy":
        // It may be this very move that is under way.
        if (await moves.hasMigration(move.id)) return this.#noteBegun(move);
        return this.#refuse(move, `Another operation is under way: ${planned.running}.`);
      case "wrong-status":
        if (await moves.hasMigration(move.id)) return this.#noteBegun(move);
        return this.#refuse(
          move,
          `The server is ${planned.status} by now; ${kind} is for ${planned.allowed.join(", ")}.`,
        );
      case "nothing-to-confirm":
        return this.#refuse(move, "There is nothing to confirm.");
      default:
        return planned satisfies never;
    }
  }

  async #afterBegin(
    link: CellLink,
    moving: Moving,
    { claimId, first, task }: { readonly claimId: string; readonly first: Selection; readonly task: Task },
    outcome: BeginOutcome,
  ): Promise<Step> {
    const { move } = moving;
    switch (outcome.kind) {
      case "begun":
        link.claims.commit(claimId, outcome.xid);
        await this.#noteBegun(move);
        return { kind: "begun", link, task, host: first.host };
      case "already-begun":
        return this.#noteBegun(move);
      case "changed":
        return null;
      case "busy":
        return this.#refuse(move, `Another operation is under way: ${outcome.running}.`);
      case "gone":
        return this.#refuse(move, "The server was deleted.");
      case "host-seen":
        return this.#refuse(move, hostInUse(moving.server.host ?? "its host"));
      case "host-unfenced":
        return this.#refuse(move, unfencedHost(moving.server.host ?? "its host"));
      case "no-capacity":
        // First the claim itself is let go of, or it would count twice.
        link.claims.giveUpUnlessCommitted(claimId);
        link.view.learnShortfalls(outcome.shortfalls);
        return this.#avoid(link, moving, first.host, outcome.kind);
      case "refused":
        moving.groupInFlight ||= outcome.inFlight;
        return this.#avoid(link, moving, first.host, outcome.why);
      case "stale":
        return this.#avoid(link, moving, first.host, outcome.why);
      default:
        return outcome satisfies never;
    }
  }

  #avoid(link: CellLink, moving: Moving, host: string, why: string): "another-host" {
    moving.tried.set(link.name, new Set([...(moving.tried.get(link.name) ?? []), host]));
    moving.fresh = false;
    this.#events.raceLost(moving.serverUuid, link.name, host, why);
    return "another-host";
  }

  /** A view that is behind must not refuse, and neither must a host that is full because this very move was begun and the answer lost. */
  async #lookAgain(
    { link, moves }: Home,
    moving: Moving,
    choice: HostChoice & { readonly kind: "none" },
  ): Promise<Step> {
    if (moving.looks > 0) {
      if (await moves.hasMigration(moving.move.id)) return this.#noteBegun(moving.move);
      if (moving.groupInFlight || awaitsGroup(choice.refusals)) return { kind: "later", why: GROUP_IN_FLIGHT };
      return this.#refuse(moving.move, noValidHost(choice, []));
    }
    moving.looks += 1;
    moving.groupInFlight = false;
    this.#events.lookedAgain(moving.serverUuid);
    await link.claims.answered();
    try {
      await link.cell.source.waitUntilSeen(this.#settings.seenDeadlineMs);
    } catch {
      return { kind: "later", why: `the view of cell ${link.name} does not catch up` };
    }
    return "another-host";
  }

  async #refuse(move: MoveRequest, fault: string): Promise<MovePlacement> {
    await this.#writes.end({ id: move.id, state: "refused", fault });
    return { kind: "refused", fault };
  }

  async #noteBegun(move: MoveRequest): Promise<MovePlacement> {
    await this.#writes.end({ id: move.id, state: "begun", fault: null });
    return { kind: "ended" };
  }
}

/** It does not move to where it is, unless its flavor alone may change there. */
function leftOut(move: MoveRequest, server: Server): Map<string, Set<string>> {
  const stays = server.host === null || (move.kind === "resize" && move.sameHostAllowed);
  return new Map(stays ? [] : [[move.cell, new Set([server.host])]]);
}

/** Of a resize that may stay on its host: what the server has there, which counts as free for it. */
function releasedBy({ move, holding }: Moving): Holding["items"] {
  return move.kind === "resize" && move.sameHostAllowed ? (holding?.items ?? []) : [];
}
