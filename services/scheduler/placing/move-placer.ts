import type { PlacingPlan } from "../../../core/placing/placing.ts";
import { MOVE } from "../../../core/placing/placing-routes.ts";
import type { MoveRecord } from "../../../core/stores/api/move-store.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerSettings } from "../settings.ts";
import type { ClaimReserver } from "./claim-reserver.ts";
import { MoveAnswers } from "./move-answers.ts";
import type { MoveWrites } from "./move-writes.ts";
import type { MovePlacement } from "./placement.ts";
import { deedsOf } from "./placing-deeds.ts";
import { type EndedPlacing, runPlacing } from "./run-placing.ts";
import type { SchedulerViews } from "./scheduler-views.ts";

/**
 * Finds a host for a server that lives, in its own cell, with alternates, and begins the operation there: one transaction that gives the
 * source's allocation to the migration and claims the destination. What has no room leads to the next choice.
 *
 * A move may be in several hands at once, by redelivery: the operation has the move's id, so that the cell knows it.
 */
export class MovePlacer {
  readonly #parts: {
    readonly views: SchedulerViews;
    readonly claims: ClaimReserver;
    readonly rows: MoveWrites;
    readonly events: SchedulerEvents;
    readonly newId: () => string;
  };
  readonly #settings: Pick<SchedulerSettings, "hostUnseenMs" | "giveUpMs">;

  constructor(
    parts: {
      /** What hosts are chosen from. */
      readonly views: SchedulerViews;
      /** This scheduler's claims on their way. */
      readonly claims: ClaimReserver;
      /** The rows of moves, in the API database. */
      readonly rows: MoveWrites;
      readonly events: SchedulerEvents;
      readonly newId: () => string;
    },
    settings: Pick<SchedulerSettings, "hostUnseenMs" | "giveUpMs">,
  ) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /**
   * Rejects when a store failed: then nobody knows whether the move has begun, and it is to be tried again. A move that is old and keeps
   * failing is refused, unless its cell may have begun it and cannot be asked.
   */
  async place({ request: move, ageMs }: MoveRecord): Promise<MovePlacement> {
    const { giveUpMs, hostUnseenMs } = this.#settings;
    const isOld = ageMs >= giveUpMs;
    // A move waits for its cell, however long a refusal for lack of hosts elsewhere would wait.
    const plan: PlacingPlan = { route: MOVE, malformed: null, isOld, giveUpMs, placeWithinMs: 0, explainedUnder: null };
    const answers = new MoveAnswers(this.#parts, { move, unseenMs: hostUnseenMs });
    const carryOut = deedsOf(this.#parts, { serverUuid: move.serverUuid, newSpec: null, explain: () => {} });
    return this.#placementOf(await runPlacing(plan, move.cell, { answers, carryOut }), answers);
  }

  #placementOf({ end }: EndedPlacing, answers: MoveAnswers): MovePlacement {
    switch (end.kind) {
      case "placed": {
        const link = this.#parts.views.cells.get(end.claim.cell)!;
        return { kind: "placed", link, task: answers.begun.task, host: end.claim.host };
      }
      case "refused":
        return { kind: "refused", fault: end.fault };
      case "over":
      case "later":
        return end;
      case "present":
      case "unplaced":
        throw new Error(`a move cannot end as ${end.kind}`);
      default:
        return end satisfies never;
    }
  }
}
