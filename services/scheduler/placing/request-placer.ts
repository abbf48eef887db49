import type { Learnt, PlacingPlan } from "../../../core/placing/placing.ts";
import { BOOT, BOOT_OF_AFFINITY_GROUP, routeInMultiCreate } from "../../../core/placing/placing-routes.ts";
import type { DecisionEffort } from "../../../core/scheduling/explain/decision.ts";
import { sumFunnels } from "../../../core/scheduling/explain/funnel.ts";
import type { HostChoice } from "../../../core/scheduling/host-chooser.ts";
import type { HostRequest } from "../../../core/scheduling/host-request.ts";
import { describeRequestRefusal } from "../../../core/scheduling/request/request-refusal.ts";
import { bareSpec } from "../../../core/tasks/server-spec.ts";
import { SPEC_BYTES_MAX } from "../../../core/tasks/spec-limits.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { SchedulerSettings } from "../settings.ts";
import { BootAnswers } from "./boot-answers.ts";
import { HostSearch } from "./host-search.ts";
import type { ChosenTogether, Found, Placement, PlacingRequest } from "./placement.ts";
import { deedsOf } from "./placing-deeds.ts";
import type { PlacingParts } from "./placing-parts.ts";
import { type EndedPlacing, runPlacing } from "./run-placing.ts";

/** The number of tries after which the obstacle counts as lasting, however old the request is. */
const GIVE_UP_TRIES = 5;

const NOTHING_ASKED: HostRequest = { groups: [], groupPolicy: "none" };

/** Places new servers, one request at a time, by the state machine of core/placing. */
export class RequestPlacer {
  readonly #parts: PlacingParts;
  readonly #settings: Pick<SchedulerSettings, "giveUpMs" | "placeWithinMs" | "attemptsMax">;

  constructor(parts: PlacingParts, settings: Pick<SchedulerSettings, "giveUpMs" | "placeWithinMs" | "attemptsMax">) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /**
   * Rejects when a store failed. Then nobody knows whether the server was dispatched, and it must be tried again. An old request that keeps
   * failing is refused, unless its cell cannot be closed to it. A server of a multi-create is never refused, but `unplaced`: the caller
   * that places them all decides.
   */
  place(request: PlacingRequest, together: ChosenTogether | null = null): Promise<Placement> {
    const read = this.#parts.views.translationOf(request.spec);
    const hostRequest = read?.kind === "host-request" ? read.hostRequest : NOTHING_ASKED;
    const malformed =
      read?.kind === "host-request" ? null : read ? describeRequestRefusal(read) : "the request has no flavor";
    const isOld = request.tries >= GIVE_UP_TRIES && request.agedMs() >= this.#settings.giveUpMs;
    return this.#run(request, new HostSearch(request.spec, hostRequest, together?.hosts), {
      malformed,
      isOld,
      together,
    });
  }

  /** Records in the API database that the request found no place, unless it was placed meanwhile. Rejects as `place` does. */
  refuse(spec: ServerSpec, fault: string): Promise<Placement> {
    const request = { spec, cell: null, assignment: 0, agedMs: () => 0 };
    return this.#run(request, new HostSearch(spec, NOTHING_ASKED), { malformed: fault, isOld: false, together: null });
  }

  /** Refuses a request whose spec is too large to be read. Rejects as `place` does. */
  async refuseTooLarge(request: {
    readonly serverUuid: string;
    readonly specBytes: number;
  }): Promise<{ readonly spec: ServerSpec; readonly placement: Placement }> {
    const { serverUuid, specBytes } = request;
    const fault =
      `The request is ${specBytes} bytes large; at most ${SPEC_BYTES_MAX} can be placed. Delete the server and create it again with fewer or ` +
      "shorter scheduler hints, metadata or image properties.";
    const spec = bareSpec(serverUuid);
    return { spec, placement: await this.refuse(spec, fault) };
  }

  async #run(
    { spec, cell, assignment, agedMs }: Pick<PlacingRequest, "spec" | "cell" | "assignment" | "agedMs">,
    search: HostSearch,
    how: Pick<PlacingPlan, "malformed" | "isOld"> & { readonly together: ChosenTogether | null },
  ): Promise<Placement> {
    const { views, decisions } = this.#parts;
    const { giveUpMs, placeWithinMs, attemptsMax } = this.#settings;
    const { malformed, isOld, together } = how;
    const route = routeOf(spec, together);
    const explainedUnder = decisions.keeps ? spec.uuid : null;
    const plan: PlacingPlan = { route, malformed, isOld, giveUpMs, placeWithinMs, explainedUnder };
    const answers = new BootAnswers(this.#parts, { search, agedMs, together, attemptsMax });
    const carryOut = deedsOf(this.#parts, {
      serverUuid: spec.uuid,
      newSpec: spec,
      explain: ({ choice, unseen, learnt }) => {
        const findMisses = () => views.chooser.nearestTo(search, learnt, views.cells.all());
        decisions.refused(spec, choice, { unseen, findMisses }, effortOf(learnt, null));
      },
    });
    const ended = await runPlacing(plan, { cell, assignment }, { answers, carryOut });
    return this.#placementOf(ended, answers, spec);
  }

  #placementOf({ end, learnt }: EndedPlacing, answers: BootAnswers, spec: ServerSpec): Placement {
    switch (end.kind) {
      case "placed": {
        const { choice, weights, selections, task } = answers.placed;
        const link = this.#parts.views.cells.get(end.claim.cell)!;
        const effort = effortOf(learnt, link.cell.source.lagMs ?? null);
        if (weights) this.#parts.decisions.placed(spec, { ...choice, selections }, weights, effort);
        return { kind: "placed", link, task, host: end.claim.host, found: foundIn(learnt, choice) };
      }
      case "refused":
        return { kind: "refused", fault: end.fault, ...foundOf(learnt, end.choice) };
      case "unplaced": {
        const { fault, cell, awaitsGroup = false } = end;
        return { kind: "unplaced", fault, cell, awaitsGroup, ...foundOf(learnt, end.choice) };
      }
      case "present":
      case "over":
      case "later":
        return end;
      default:
        return end satisfies never;
    }
  }
}

function routeOf({ group }: ServerSpec, together: ChosenTogether | null): PlacingPlan["route"] {
  const alone = group?.policy === "affinity" ? BOOT_OF_AFFINITY_GROUP : BOOT;
  return together === null ? alone : routeInMultiCreate(alone);
}

function effortOf({ tries, lostRaces, looks }: Learnt, viewLagMs: number | null): DecisionEffort {
  return { tries, lostRaces, looks, viewLagMs };
}

function foundOf(learnt: Learnt, choice: HostChoice | null): { readonly found?: Found } {
  return choice === null ? {} : { found: foundIn(learnt, choice) };
}

function foundIn({ tries, lostRaces }: Learnt, choice: HostChoice): Found {
  const { steps } = sumFunnels(choice.kind === "none" ? choice.funnels : []);
  const left = new Map(steps.map((step) => [step.step, step.left]));
  return { feasible: choice.kind === "none" ? 0 : choice.feasible, left, tries, lostRaces };
}
