import { type ExplainRouteDeps, registerExplainRoutes } from "../explain/explain-routes.ts";
import type { Http } from "../http/create-http.ts";
import { faultOf, type IdentityOutcome, type ResolveIdentity } from "../http/identity.ts";
import { MINOR_MAX } from "../http/microversion.ts";
import { registerHostRoutes } from "./host-routes.ts";
import type { OperatorDeps } from "./operator-deps.ts";
import { registerRatioRoutes } from "./ratio-routes.ts";
import { registerSettingsRoutes } from "./settings-routes.ts";

/** Where the API hangs that Nova has nothing like: for operators, spoken by the `berth` command. */
export const OPERATORS_PREFIX = "/berth/v1";

/** Mounts the operators' API. Callers are known as those of the Compute API are; there are no microversions. */
export function registerOperators(
  http: Http,
  deps: OperatorDeps,
  explain: ExplainRouteDeps,
  resolveIdentity: ResolveIdentity,
): void {
  http.register(
    (scope, _options, done) => {
      scope.addHook("onRequest", async (request) => {
        const outcome: IdentityOutcome = await resolveIdentity(request.headers, request.method);
        if (outcome.kind !== "known") throw faultOf(outcome);
        request.call = { requestId: request.id, minor: MINOR_MAX, identity: outcome.identity };
      });
      registerSettingsRoutes(scope as Http, deps.stores);
      registerRatioRoutes(scope as Http, deps);
      registerHostRoutes(scope as Http, deps);
      registerExplainRoutes(scope as Http, explain);
      done();
    },
    { prefix: OPERATORS_PREFIX },
  );
}
