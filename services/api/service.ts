import type { FastifyInstance } from "fastify";
import { apiStreams } from "../../adapters/nats/streams.ts";
import type { Service } from "../../runtime/service.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";
import { type ApiDeps, type ApiParts, createParts } from "./api-parts.ts";
import { CellWatch } from "./compute/servers/cell-watch.ts";
import { identityByRoles, identityResolver, type ResolveIdentity } from "./http/identity.ts";
import { registerProbes } from "./http/probe-routes.ts";
import { registerCompute } from "./http/register-compute.ts";
import { registerVersionList } from "./http/version-routes.ts";
import { computeDefaults } from "./policy/compute-rules.ts";
import { Policy } from "./policy/policy.ts";
import { queueRemarks } from "./queue-remarks.ts";
import { ALL_ROUTES, type ApiRoutes, openDashboard, registerOperatorRoutes } from "./register-routes.ts";
import type { ApiSettings } from "./settings.ts";

export interface ApiService extends Service {
  /** The address that the api listens on, with the port that was bound. Available only after `start`. */
  readonly address: HostPort;
  /** The HTTP server, for calls without a socket in tests and in compositions of one process. */
  readonly http: FastifyInstance;
  /** Does everything that `start` does except listening, for callers that use only `http`. */
  open(): Promise<void>;
}

/**
 * Builds the api. The caller owns the deps: `close` ends the work of the api, not its stores and buses. `routes` are all by
 * default; the simulator, which starts apis very often, has a part of them.
 */
export function createApi(deps: ApiDeps, settings: ApiSettings, routes: ApiRoutes = ALL_ROUTES): ApiService {
  const parts = createParts(deps, settings);
  const { http, events, server, background } = parts;
  const watch = new CellWatch(deps.cells, { marker: server.marker, events, clock: deps.clock });
  let serving = false;
  let closed: Promise<void> | null = null;

  registerProbes(http, {
    registry: settings.http.metrics ? deps.registry : null,
    // Requests are accepted even while NATS is unreachable, since the schedulers' sweeps find them. A NATS server without the work queue
    // must be repaired first.
    isServing: () => serving && deps.bus.streamState() !== "missing",
    ping: () => deps.store.ping(),
    remarks: () => [...queueRemarks(deps.bus), ...(deps.remarks?.() ?? [])],
  });
  registerVersionList(http, settings.http.publicUrl);
  const resolveIdentity = identityResolver(settings.auth, deps.keystone ?? null);
  registerCompute(http, {
    prefixes: settings.http.computePrefixes,
    bodyBytesMax: Math.min(settings.http.computeBodyBytesMax, settings.http.bodyBytesMax),
    resolveIdentity,
    policy: deps.policy ?? new Policy(computeDefaults()),
    register: (scope, prefix) => routes.compute(scope, prefix, deps, parts, settings),
  });
  const live = registerOthers(routes, deps, parts, settings, identityByRoles(resolveIdentity));
  http.register(async (scope) => {
    for (const mount of deps.mounts ?? []) await mount(scope);
  });

  const close = async () => {
    serving = false;
    await Promise.all([watch.close(), ...background.map((one) => one.stop())]);
    live?.close();
    await http.close();
    await Promise.all([server.acceptor.settle(), server.mover?.settle(), server.marker.settle()]);
  };
  const open = async () => {
    await http.ready();
    // Requests are accepted without the bus, so an unreachable bus must not keep the api from starting.
    const streams = deps.bus.ensureStreams(apiStreams).catch((error: unknown) => events.streamsMissing(error));
    await Promise.all([streams, watch.start()]);
    for (const one of background) one.start();
    serving = true;
  };
  return {
    http,
    open,
    get address() {
      const bound = http.server.address();
      if (bound === null || typeof bound === "string") throw new Error("the api is not listening yet");
      return { host: bound.address, port: bound.port };
    },
    async start() {
      try {
        await open();
        await deps.beforeListening?.();
        const { host, port } = settings.http.listen;
        events.listening(await http.listen({ host, port }));
      } catch (error) {
        await close();
        throw error;
      }
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
}

/** Registers the APIs beside the Compute API. Returns the dashboard's stream of changes, if there is a dashboard. */
function registerOthers(
  { neighbours }: ApiRoutes,
  deps: ApiDeps,
  parts: ApiParts,
  settings: ApiSettings,
  resolveIdentity: ResolveIdentity,
): ReturnType<typeof openDashboard> | null {
  registerOperatorRoutes(deps, parts, settings, resolveIdentity);
  neighbours(deps, parts, settings, resolveIdentity);
  return settings.dashboard ? openDashboard(deps, parts, resolveIdentity) : null;
}
