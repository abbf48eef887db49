import { type DescribedOperation, describeRoutes, operation as one } from "../http/describe-routes.ts";
import type { KnownRoute } from "../http/known-paths.ts";
import type { OpenApiDocument } from "../placement/openapi.ts";

/** The operations of the operators' API, by method and path. Those of the dashboard are served only by an api that has one. */
const OPERATIONS: Readonly<Record<string, DescribedOperation>> = {
  "GET /openapi.json": one("showDocument", "Show this document", [200]),
  "GET /settings": one("showSettings", "Show the settings of schedulers", [200]),
  "PUT /settings": one("changeSettings", "Change settings of schedulers", [200], [409]),
  "GET /ratios": one("showRatios", "Show the allocation ratios of hosts and aggregates", [200]),
  "PUT /ratios": one("changeRatios", "Change the allocation ratios of a host or an aggregate", [200], [404, 409]),
  "POST /sync-aggregates": one("syncAggregates", "Bring aggregates and ratios to the cells at once", [200]),
  "GET /hosts": one("listHosts", "List hosts with their states and their failed builds", [200]),
  "GET /hosts/{host}": one("showHost", "Show a host", [200]),
  "PUT /hosts/{host}": one("changeHost", "Enable, disable or fence a host, or forget its failed builds", [200], [409]),
  "POST /deleted-images": one("askDeletedImages", "Ask which of some images are deleted", [200]),
  "POST /explain": one("explainRequest", "Explain where a server would go, without placing it", [200], [404]),
  "GET /explain/{server}": one("explainServer", "Tell the whole life of a server", [200]),
  "GET /decisions/{server}": one("listDecisions", "List the decisions about a server", [200]),
  "POST /servers/{server}/volumes/{volume}/settle": one(
    ...(["settleVolume", "Settle which of two volumes a server's guest uses", [202], [404, 409]] as const),
  ),
  "GET /live": one("followCloud", "Follow the cloud by server-sent events", [200]),
  "GET /live/picture": one("showCloud", "Show the picture of the cloud once", [200]),
  "GET /live/hosts/{host}": one("showProviders", "Show the provider tree of a host", [200]),
  "PUT /faults": one("injectFault", "Inject a fault into a trial cloud", [200], [404, 409]),
  "DELETE /faults": one("healFaults", "End all injected faults", [200]),
};

const INFO = {
  title: "Operators",
  version: "1",
  summary: "Berth's own API for operators, which has no counterpart in OpenStack.",
  description:
    "All of it is reserved for admins, by the policies in `x-policy-rule`. Bodies have the schemas that they are checked with.",
};

/** Describes the routes of the operators' API below `prefix`. Throws for a route that the table above lacks. */
export function operatorsDocument(routes: readonly KnownRoute[], prefix: string): OpenApiDocument {
  return describeRoutes(routes, { prefix, info: INFO, operations: OPERATIONS, hasMicroversions: false });
}
