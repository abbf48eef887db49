import type { FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import { metricsText } from "../../../runtime/metrics-text.ts";
import type { SearchedCell } from "./view-candidates.ts";

const READY_DEADLINE_MS = 2_000;

/** /healthz (alive), /readyz (its views follow their cells) and, unless it has an address of its own (`registry` null), /metrics. */
export function registerPlacementProbes(
  http: FastifyInstance,
  deps: {
    readonly registry: Registry | null;
    readonly isServing: () => boolean;
    readonly cells: readonly SearchedCell[];
  },
): void {
  http.get("/healthz", async () => ({ status: "ok" }));
  http.get("/readyz", async (_request, reply) => {
    const fresh = await Promise.allSettled(deps.cells.map((cell) => cell.source.waitUntilSeen(READY_DEADLINE_MS)));
    const behind = fresh.filter((one) => one.status === "rejected").length;
    if (deps.isServing() && behind === 0) return { status: "ready" };
    return reply.code(503).send({ status: "not ready", cellsBehind: behind });
  });
  const { registry } = deps;
  if (registry === null) return;
  http.get("/metrics", async (request, reply) => {
    const { type, body } = await metricsText(registry, request.headers.accept);
    return reply.type(type).send(body);
  });
}
