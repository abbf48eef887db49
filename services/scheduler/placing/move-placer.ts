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
 * Finds a host and alternates for a server in its own cell, and begins the operation there: one transaction transfers the source's
 * allocation to the migration and claims the destination. If a host has no room, another one is chosen.
 *
 * Several processes may place one move at the same time after a redelivery. The operation has the move's id, so the cell recognises it.
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
      /** The views from which hosts are chosen. */
      readonly views: SchedulerViews;
      /** This scheduler's claims whose outcome its views do not show yet. */
      readonly claims: ClaimReserver;
      /** Access to the rows of moves in the API database. */
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
   * Rejects when a store failed. Then nobody knows whether the move has begun, and it must be tried again. An old move that keeps failing
   * is refused, unless its cell may have begun it and cannot be asked.
   */
  async place({ request: move, ageMs }: MoveRecord): Promise<MovePlacement> {
    const { giveUpMs, hostUnseenMs } = this.#settings;
    const isOld = ageMs >= giveUpMs;
    // A move waits for its cell longer than a refusal for lack of hosts elsewhere would wait.
    const plan: PlacingPlan = { route: MOVE, malformed: null, isOld, giveUpMs, placeWithinMs: 0, explainedUnder: null };
    const answers = new MoveAnswers(this.#parts, { move, unseenMs: hostUnseenMs });
    const carryOut = deedsOf(this.#parts, { serverUuid: move.serverUuid, newSpec: null, explain: () => {} });
    return this.#placementOf(await runPlacing(plan, { cell: move.cell }, { answers, carryOut }), answers);
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
