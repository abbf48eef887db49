import { randomUUID } from "node:crypto";
import type { Http } from "../http/create-http.ts";
import type { ResolveIdentity } from "../http/identity.ts";
import { registerNeighbour } from "../http/register-neighbour.ts";
import { registerDashboardPage } from "./dashboard-page.ts";
import { LiveModel, type LiveModelDeps } from "./live-model.ts";
import { registerLiveRoutes } from "./live-routes.ts";
import { LiveStream } from "./live-stream.ts";

/** Mounts the dashboard: the page and the routes that it calls. Returns the stream, which must be closed before the HTTP server. */
export function registerDashboard(http: Http, deps: LiveModelDeps, resolveIdentity: ResolveIdentity): LiveStream {
  const stream = new LiveStream({
    clock: deps.clock,
    newEpoch: () => randomUUID().slice(0, 8),
    openModel: (onChange) => new LiveModel(deps, onChange),
  });
  registerDashboardPage(http);
  registerNeighbour(http, "/berth/v1", resolveIdentity, (scope) =>
    registerLiveRoutes(scope, { stream, ports: deps.ports, faults: deps.faults }),
  );
  return stream;
}
