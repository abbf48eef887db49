import { randomUUID } from "node:crypto";
import type { Http } from "../http/create-http.ts";
import type { ResolveIdentity } from "../http/identity.ts";
import { registerNeighbour } from "../http/register-neighbour.ts";
import { registerDashboardPage } from "./dashboard-page.ts";
import { LiveModel, type LiveModelDeps } from "./live-model.ts";
import { registerLiveRoutes } from "./live-routes.ts";
import { LiveStream } from "./live-stream.ts";
import { UsageHistory } from "./usage-history.ts";

export interface Dashboard {
  /** Disconnects everybody who watches. Call it before the HTTP server is closed. */
  close(): void;
}

/** Mounts the dashboard: the page and the routes that it calls. */
export function registerDashboard(
  http: Http,
  deps: Omit<LiveModelDeps, "history">,
  resolveIdentity: ResolveIdentity,
): Dashboard {
  const history = new UsageHistory(deps.ports, deps.clock);
  const stream = new LiveStream({
    clock: deps.clock,
    newEpoch: () => randomUUID().slice(0, 8),
    openModel: (onChange) => new LiveModel({ ...deps, history }, onChange),
  });
  registerDashboardPage(http);
  registerNeighbour(http, { prefix: "/berth/v1", serviceTypes: [] }, resolveIdentity, (scope) =>
    registerLiveRoutes(scope, { stream, ports: deps.ports, faults: deps.faults }),
  );
  history.start();
  return {
    close: () => {
      history.stop();
      stream.close();
    },
  };
}
