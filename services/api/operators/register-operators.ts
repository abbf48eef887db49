import type { OperatorDeps } from "../compute/aggregates/operator-deps.ts";
import type { Http } from "../http/create-http.ts";
import { registerDocument } from "../http/document-route.ts";
import type { ResolveIdentity } from "../http/identity.ts";
import { registerNeighbour } from "../http/register-neighbour.ts";
import { type ExplainRouteDeps, registerExplainRoutes } from "./explain/explain-routes.ts";
import { registerHostRoutes } from "./host-routes.ts";
import { type ImageOrigin, registerImageFileRoutes } from "./image-file-routes.ts";
import { operatorsDocument } from "./operators-document.ts";
import { registerRatioRoutes } from "./ratio-routes.ts";
import { registerSettingsRoutes } from "./settings-routes.ts";
import { registerVolumeSettling, type SettleVolumeDeps } from "./volume-routes.ts";

/** The path of the operators' API, which has no counterpart in Nova and is used by the `berth` command. */
export const OPERATORS_PREFIX = "/berth/v1";

/** Mounts the operators' API. Callers are known as those of the Compute API are; there are no microversions. */
export function registerOperators(
  http: Http,
  deps: OperatorDeps & { readonly servers: SettleVolumeDeps },
  explain: ExplainRouteDeps,
  images: ImageOrigin | null,
  resolveIdentity: ResolveIdentity,
): void {
  registerNeighbour(http, { prefix: OPERATORS_PREFIX, serviceTypes: [] }, resolveIdentity, (scope) => {
    registerDocument(scope, OPERATORS_PREFIX, operatorsDocument);
    registerSettingsRoutes(scope, deps.stores);
    registerRatioRoutes(scope, deps);
    registerHostRoutes(scope, deps);
    registerExplainRoutes(scope, explain);
    registerVolumeSettling(scope, deps.servers);
    if (images !== null) registerImageFileRoutes(scope, images);
  });
}
