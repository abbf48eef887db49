import Fastify, { type FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import type { CellArbiter } from "../../../core/stores/api/cell-arbiter.ts";
import type { Logger } from "../../../runtime/logger.ts";
import { refuseConnect } from "../../../runtime/refuse-connect.ts";
import { refuseFragments } from "../../../runtime/refuse-fragments.ts";
import { acceptRequestId, newRequestId } from "../../../runtime/request-id.ts";
import type { Service } from "../../../runtime/service.ts";
import type { HostPort } from "../../../runtime/setting-kinds.ts";
import { failureText } from "../failure-text.ts";
import type { Policy } from "../policy/policy.ts";
import type { PlacementDeps } from "./app.ts";
import type { Cors } from "./cors.ts";
import { FederatedStore, type NamedStore } from "./federation/federated-store.ts";
import type { PlacementRequest } from "./http.ts";
import type { Authenticate } from "./identity.ts";
import { answerBrokenRequest, answerUnroutable, mountPlacement } from "./mount.ts";
import { errorDocument, PlacementError } from "./placement-error.ts";
import { registerPlacementProbes } from "./probes.ts";
import type { PlacementSettings } from "./settings.ts";
import { createViewCandidates, type SearchedCell } from "./view-candidates.ts";
import { watchStore } from "./watch-store.ts";

/** A cell whose ledger the Placement API shows. */
export type PlacementCell = NamedStore & SearchedCell;

export interface PlacementServiceDeps {
  readonly cells: readonly [PlacementCell, ...PlacementCell[]];
  readonly authenticate: Authenticate;
  readonly policy: Policy;
  readonly cors: Cors | null;
  /** Coordinates processes that write to several cells. Null when no other process writes. */
  readonly arbiter: CellArbiter | null;
  readonly logger: Logger;
}

export interface PlacementService extends Service {
  /** The address that the service listens on. Available only after `start`. */
  readonly address: HostPort;
}

/** Builds the dependencies of the Placement API over these cells, ready to be mounted. */
export function placementDeps(deps: PlacementServiceDeps, settings: PlacementSettings): PlacementDeps {
  const { logger } = deps;
  const [first, ...others] = deps.cells;
  const watch = (cell: PlacementCell): NamedStore =>
    watchStore(cell, {
      storeLost: (name, error) => logger.error({ cell: name, err: error }, "the cell's database does not answer"),
      storeBack: (name) => logger.info({ cell: name }, "the cell's database answers again"),
    });
  return {
    store: new FederatedStore([watch(first), ...others.map(watch)], settings.defaultCell, deps.arbiter),
    source: createViewCandidates(() => deps.cells, {
      strategy: settings.generationStrategy,
      candidatesMax: settings.candidatesMax,
      stepsMax: settings.searchStepsMax,
      freshnessDeadlineMs: settings.freshnessDeadlineMs,
      ...(settings.randomizeCandidates ? { random: Math.random } : {}),
    }),
    authenticate: deps.authenticate,
    policy: deps.policy,
    cors: deps.cors ?? undefined,
    onUnexpected: (error: unknown, { requestId, method, path }: PlacementRequest, status: number) =>
      logger.error({ err: error, requestId, method, path, status }, failureText(status)),
    onBoundReached: ({ requestId, query }: PlacementRequest) =>
      logger.warn(
        { requestId, query },
        "a search for allocation candidates reached the limit of its work and was ended there",
      ),
  };
}

/** Mounts the Placement API under /placement of another server. Mounts nothing while there are no cells. */
export function placementMounts(
  deps: Omit<PlacementServiceDeps, "cells"> & { readonly cells: readonly PlacementCell[] },
  settings: PlacementSettings,
): ((http: FastifyInstance) => Promise<void>)[] {
  const [first, ...others] = deps.cells;
  if (first === undefined) return [];
  const placement = placementDeps({ ...deps, cells: [first, ...others] }, settings);
  return [(http) => mountPlacement(http, placement, "/placement")];
}

/**
 * Creates a service with only the Placement API, at the root of its address. Without a `registry` there is no /metrics. The caller owns the
 * deps.
 */
export function createPlacement(
  deps: PlacementServiceDeps & {
    readonly registry: Registry | null;
    /** Called after everything else has started, just before the service listens. */
    readonly beforeListening?: () => Promise<void>;
  },
  settings: PlacementSettings,
): PlacementService {
  const http: FastifyInstance = Fastify({
    logger: false,
    bodyLimit: settings.bodyBytesMax,
    requestTimeout: settings.requestTimeoutMs,
    forceCloseConnections: "idle",
    genReqId: (request) => acceptRequestId(request.headers["x-openstack-request-id"]) ?? newRequestId(),
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: answerUnroutable,
    routerOptions: { maxParamLength: settings.pathBytesMax },
  });
  const refused = new PlacementError(405, "The method specified is not allowed for this resource.");
  const context = { method: "CONNECT", requestId: "", withCode: false };
  refuseConnect(http.server, JSON.stringify(errorDocument(refused, context)));
  refuseFragments(http);
  let serving = false;
  registerPlacementProbes(http, { registry: deps.registry, isServing: () => serving, cells: deps.cells });
  return {
    get address() {
      const bound = http.server.address();
      if (bound === null || typeof bound === "string") throw new Error("the service is not listening yet");
      return { host: bound.address, port: bound.port };
    },
    async start() {
      await mountPlacement(http, placementDeps(deps, settings), "");
      // Waits until the views have loaded, so that the first search does not have to.
      await Promise.all(deps.cells.map((cell) => cell.source.waitUntilSeen(settings.loadDeadlineMs)));
      await deps.beforeListening?.();
      const { host, port } = settings.listen;
      await http.listen({ host, port });
      serving = true;
      const { port: bound } = this.address;
      deps.logger.info({ host, port: bound }, "the service serves the Placement API");
    },
    async close() {
      serving = false;
      await http.close();
    },
  };
}
