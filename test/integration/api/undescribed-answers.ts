import type { FastifyInstance } from "fastify";
import { computeDocument } from "../../../services/api/compute/openapi/compute-document.ts";
import type { KnownRoute } from "../../../services/api/http/known-paths.ts";
import { operatorsDocument } from "../../../services/api/operators/operators-document.ts";

type Paths = Readonly<
  Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, object>> }>>>
>;

const DOCUMENTS = [
  ["/v2.1", computeDocument],
  ["/berth/v1", operatorsDocument],
] as const;

/** Collects the answers of an api whose status its OpenAPI documents do not have, as `GET /v2.1/servers: 418`. */
export function collectUndescribed(http: FastifyInstance): ReadonlySet<string> {
  const undescribed = new Set<string>();
  let described: ReadonlyMap<string, object> = new Map();
  // Not at the first answer, since that would delay what the api waits for at the time.
  http.addHook("onReady", (done) => {
    described = describedAnswers(http.knownRoutes?.() ?? []);
    done();
  });
  http.addHook("onResponse", (request, reply, done) => {
    const { url = "", config } = request.routeOptions;
    // The router takes `/servers/` for `/servers`, but it is no path of the API.
    const isPath = reply.statusCode !== 404 || !request.url.split("?", 1)[0]?.endsWith("/");
    if (isPath && DOCUMENTS.some(([prefix]) => url.startsWith(`${prefix}/`)) && config.removed !== true) {
      const method = request.method === "HEAD" ? "GET" : request.method;
      const answers = described.get(`${method} ${url.replaceAll(/:(\w+)/g, "{$1}")}`) ?? {};
      if (!Object.hasOwn(answers, reply.statusCode)) undescribed.add(`${method} ${url}: ${reply.statusCode}`);
    }
    done();
  });
  return undescribed;
}

/** What is described of the routes that apis of this process have had, by their methods and paths. */
const remembered = new Map<string, ReadonlyMap<string, object>>();

/** The answers of every operation, by method and path. */
function describedAnswers(routes: readonly KnownRoute[]): ReadonlyMap<string, object> {
  const key = routes.map(({ method, url }) => `${method} ${url}`).join();
  const described = remembered.get(key) ?? readAnswers(routes);
  remembered.set(key, described);
  return described;
}

function readAnswers(routes: readonly KnownRoute[]): ReadonlyMap<string, object> {
  return new Map(
    DOCUMENTS.flatMap(([prefix, describe]) =>
      Object.entries(describe(routes, prefix).paths as Paths).flatMap(([path, item]) =>
        Object.entries(item).map(([verb, of]) => [`${verb.toUpperCase()} ${prefix}${path}`, of.responses] as const),
      ),
    ),
  );
}
