import { askedCallOf, callerTokenOf } from "./call.ts";
import type { Http } from "./create-http.ts";
import { faultOf, type IdentityOutcome, type ResolveIdentity } from "./identity.ts";
import { MINOR_MAX } from "./microversion.ts";

/** The path of an API, and the types that catalogues, and access rules of application credentials, may have for it. */
interface NeighbourApi {
  readonly prefix: string;
  readonly serviceTypes: readonly string[];
}

/**
 * Mounts an API beside the Compute API: the operators' API, or the served part of another OpenStack API. Callers are authenticated as in
 * the Compute API, except on routes that are public. There are no microversions.
 */
export function registerNeighbour(
  http: Http,
  { prefix, serviceTypes }: NeighbourApi,
  resolveIdentity: ResolveIdentity,
  register: (http: Http) => void,
): void {
  http.register(
    (scope, _options, done) => {
      scope.addHook("onRequest", async (request) => {
        if (request.routeOptions.config.public === true) return;
        const outcome: IdentityOutcome = await resolveIdentity(request.headers, askedCallOf(request, serviceTypes));
        if (outcome.kind !== "known") throw faultOf(outcome);
        request.call = {
          requestId: request.id,
          minor: MINOR_MAX,
          identity: outcome.identity,
          token: callerTokenOf(request),
          policy: null,
          rules: [],
        };
      });
      register(scope as Http);
      done();
    },
    { prefix },
  );
}
