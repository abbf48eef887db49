import type { FastifyInstance } from "fastify";

/**
 * Refuses every request whose target contains a `#` with 400, before anything else reads it. Node's parser lets it through, and the router
 * ends the path there, so that it would serve another path than the one that access rules and checks of the query have judged.
 *
 * Source: a request target has no fragment (https://www.rfc-editor.org/rfc/rfc9112#section-3.2).
 */
export function refuseFragments(http: FastifyInstance): void {
  http.addHook("onRequest", ({ raw }, _reply, done) => {
    if (raw.url?.includes("#") !== true) return done();
    const why = "The request target contains '#', which HTTP does not allow: write it as %23.";
    done(Object.assign(new Error(why), { statusCode: 400 }));
  });
}
