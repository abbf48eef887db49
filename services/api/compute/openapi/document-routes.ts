import type { Http } from "../../http/create-http.ts";
import { computeDocument } from "./compute-document.ts";

/** Registers `/openapi.json`, which describes the routes below `prefix` and is readable without authentication. */
export function registerComputeDocument(http: Http, prefix: string): void {
  let text: string | null = null;
  http.get("/openapi.json", { config: { public: true } }, async (_request, reply) => {
    text ??= JSON.stringify(computeDocument(http.knownRoutes?.() ?? [], prefix));
    return reply.header("content-type", "application/json").send(text);
  });
}
