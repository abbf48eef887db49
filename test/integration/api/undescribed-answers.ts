import type { FastifyInstance } from "fastify";
import { computeDocument } from "../../../services/api/compute/openapi/compute-document.ts";

type Paths = Readonly<
  Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, object>> }>>>
>;

const PREFIX = "/v2.1";

/** Collects the answers of an api whose status its OpenAPI document does not have, as `GET /servers: 418`. */
export function collectUndescribed(http: FastifyInstance): ReadonlySet<string> {
  const undescribed = new Set<string>();
  let paths: Paths | null = null;
  http.addHook("onResponse", (request, reply, done) => {
    const { url, config } = request.routeOptions;
    if (url?.startsWith(`${PREFIX}/`) && config.removed !== true) {
      paths ??= computeDocument(http.knownRoutes?.() ?? [], PREFIX).paths as Paths;
      const path = url.slice(PREFIX.length).replaceAll(/:(\w+)/g, "{$1}");
      const method = request.method === "HEAD" ? "get" : request.method.toLowerCase();
      const responses = paths[path]?.[method]?.responses ?? {};
      if (!Object.hasOwn(responses, reply.statusCode))
        undescribed.add(`${request.method} ${path}: ${reply.statusCode}`);
    }
    done();
  });
  return undescribed;
}
