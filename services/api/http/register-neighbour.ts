import type { Http } from "./create-http.ts";
import { faultOf, type IdentityOutcome, type ResolveIdentity } from "./identity.ts";
import { MINOR_MAX } from "./microversion.ts";

/** Mounts an API beside the Compute API: the part of another of OpenStack's that is served here, or the operators'. Callers are known as those of the Compute API are; there are no microversions. */
export function registerNeighbour(
  http: Http,
  prefix: string,
  resolveIdentity: ResolveIdentity,
  register: (http: Http) => void,
): void {
  http.register(
    (scope, _options, done) => {
      scope.addHook("onRequest", async (request) => {
        const outcome: IdentityOutcome = await resolveIdentity(request.headers, request.method);
        if (outcome.kind !== "known") throw faultOf(outcome);
        request.call = { requestId: request.id, minor: MINOR_MAX, identity: outcome.identity };
      });
      register(scope as Http);
      done();
    },
    { prefix },
  );
}
