import type { OpenApiDocument } from "../placement/openapi.ts";
import type { Http } from "./create-http.ts";
import type { KnownRoute } from "./known-paths.ts";

/** Registers `/openapi.json`, which describes the routes below `prefix` and is readable without authentication. */
export function registerDocument(
  http: Http,
  prefix: string,
  describe: (routes: readonly KnownRoute[], prefix: string) => OpenApiDocument,
): void {
  let text: string | null = null;
  http.get("/openapi.json", { config: { public: true } }, async (_request, reply) => {
    text ??= JSON.stringify(describe(http.knownRoutes?.() ?? [], prefix));
    return reply.header("content-type", "application/json").send(text);
  });
}
