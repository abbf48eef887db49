import { Type } from "typebox";
import { describeSearchRefusal } from "../../../../core/candidates/refusal.ts";
import { keptMiss, keptSteps, keptWeight } from "../../../../core/scheduling/explain/decision.ts";
import type { Explanation } from "../../../../core/scheduling/explain/explain-request.ts";
import type { DecisionStore } from "../../../../core/stores/api/decision-store.ts";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { notFound, unavailable } from "../../http/fault.ts";
import { readUuidLike } from "../../placement/uuids.ts";
import { type ExplainDeps, type ExplainedCall, explainCall } from "./explain-call.ts";
import {
  DecisionsAnswer,
  type ExplainAnswer,
  ExplainAnswer as ExplainAnswerSchema,
  ExplainBody,
} from "./explain-schemas.ts";
import { type KnownLife, type LifeDeps, readLife } from "./known-life.ts";
import { LifeAnswer } from "./life-schemas.ts";
import { decisionView, lifeView } from "./life-view.ts";

export interface ExplainRouteDeps extends ExplainDeps {
  readonly life: LifeDeps;
  /** Whether this api serves the dashboard, to which the answers then link. */
  readonly hasDashboard: boolean;
  /** Null when decisions are not kept. */
  readonly decisions: Pick<DecisionStore, "decisionsOf"> | null;
}

/**
 * `POST /explain`: where a server would go. `GET /explain/{server}`: all known facts about a server. `GET /decisions/{server}`: only the
 * schedulers' decisions about it. Admins only.
 */
export function registerExplainRoutes(http: Http, deps: ExplainRouteDeps): void {
  const explain = { body: ExplainBody, response: { 200: ExplainAnswerSchema } };
  http.post("/explain", { config: { rule: "berth:explain" }, schema: explain }, async (request) => {
    const call = callOf(request);
    if (deps.cells.length > 0 && deps.cells.every(({ view }) => view === null))
      throw unavailable("This api follows no cell's ledger, so it cannot say where a server would go.");
    return explainView(await explainCall(deps, call, request.body));
  });

  const show = { params: Type.Object({ server: Type.String() }), response: { 200: DecisionsAnswer } };
  http.get("/decisions/:server", { config: { rule: "berth:decisions:show" }, schema: show }, async (request) => {
    const { server } = request.params;
    const uuid = readUuidLike(server);
    const kept = uuid === null ? [] : ((await deps.decisions?.decisionsOf(uuid)) ?? []);
    if (kept.length === 0)
      throw notFound(
        `No decision about server ${server.slice(0, 100)} is kept: it was not made yet, long ago, or at a busy time.`,
      );
    return { decisions: kept.map(decisionView) };
  });

  const life = { params: Type.Object({ server: Type.String() }), response: { 200: LifeAnswer } };
  http.get("/explain/:server", { config: { rule: "berth:explain" }, schema: life }, async (request) => {
    const { server } = request.params;
    const uuid = readUuidLike(server);
    const known = uuid === null ? null : await readLife(deps.life, uuid);
    if (known === null || isNothing(known)) {
      const away = known?.unreachable.map((cell) => ` Cell ${cell} does not answer and may know more.`).join("") ?? "";
      throw notFound(
        `Nothing is known of server ${server.slice(0, 100)}: it was never accepted here, or its history was archived (berth db archive).${away}`,
      );
    }
    return lifeView(known, deps.hasDashboard);
  });
}

function isNothing({ request, decisions, moves, inCell }: KnownLife): boolean {
  return request === null && inCell === null && decisions.length === 0 && moves.length === 0;
}

const NOTHING: Explanation = {
  funnel: { trees: 0, steps: [], cells: [] },
  ...{ hosts: [], misses: [], servers: [], host: null },
};

function explainView({ refusal, explanation, cellsNotSearched }: ExplainedCall): ExplainAnswer {
  const { funnel, hosts, misses, servers, host } = explanation ?? NOTHING;
  return {
    refusal,
    hosts: funnel.trees,
    steps: keptSteps(funnel).map((step) => ({ ...step, removed: [...step.removed] })),
    cells: funnel.cells.map(({ cell, trees, steps }) => ({ cell, hosts: trees, left: steps.map(({ left }) => left) })),
    ranked: hosts.map((one) => ({ cell: one.cell, ...keptWeight(one) })),
    servers: servers.map((server) => ({ ...server, alternates: [...server.alternates] })),
    nearest: misses.map(keptMiss).map((miss) => ({ ...miss, lacks: [...miss.lacks] })),
    host: host && {
      ...{ cell: host.cell, host: host.host },
      steps: host.verdicts.map(({ step, refusal: why }) => ({ step, why: why && describeSearchRefusal(why) })),
      lacks: host.lacks.map(({ resourceClass, requested, free, provider }) => ({
        ...{ class: resourceClass, requested, free, provider },
      })),
    },
    cells_not_searched: [...cellsNotSearched],
  };
}
