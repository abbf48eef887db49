import type { PlacementStore } from "../../../core/stores/cell/placement-store.ts";
import type { TokenIdentity } from "../identity/token-identity.ts";
import type { Policy } from "../policy/policy.ts";
import type { Cors } from "./cors.ts";
import type { Answer, PlacementCall, PlacementRequest, PlacementResponse } from "./http.ts";
import type { Authenticate } from "./identity.ts";
import { MAX_MINOR, MIN_MINOR, type Microversion, negotiate } from "./microversion.ts";
import { errorDocument, PlacementError, placementNotFound } from "./placement-error.ts";
import { RULES } from "./placement-rules.ts";
import { refusalOf } from "./refusal-of.ts";
import { type PlacementRoute, routeFor } from "./routes.ts";
import { parseJson } from "./validate.ts";
import type { CandidateSource } from "./view-candidates.ts";

export interface PlacementDeps {
  readonly store: PlacementStore;
  readonly source: CandidateSource;
  readonly authenticate: Authenticate;
  readonly policy: Policy;
  /** Without it, browsers may not call from other sites. */
  readonly cors?: Cors | undefined;
  /** Called once for each error that is not the client's fault, with its request and the status of the answer. */
  readonly onUnexpected: (error: unknown, request: PlacementRequest, status: number) => void;
  /** Called for each search that stopped at its limit on work. */
  readonly onBoundReached: (request: PlacementRequest) => void;
}

const API_VERSION_HEADER = "openstack-api-version";

/**
 * The Placement API as a function from request to response. Checks are made in upstream's order: identity (401), version (400, 406), route
 * (404, 405), content and accept types (400, 415, 406), permission (403), then the handler. The root needs no token.
 */
export async function handlePlacement(deps: PlacementDeps, request: PlacementRequest): Promise<PlacementResponse> {
  let version: Microversion | null = null;
  try {
    const identity = await identify(deps, request);
    version = negotiate(request.headers);
    const answer = await dispatch(deps, request, version, identity);
    if (answer.boundReached) deps.onBoundReached(request);
    return respond(request, version, answer);
  } catch (error) {
    const refused = error instanceof PlacementError ? error : (refusalOf(error) ?? unexpected(deps, request, error));
    return respondError(request, version, refused);
  }
}

function unexpected(deps: PlacementDeps, request: PlacementRequest, error: unknown): PlacementError {
  deps.onUnexpected(error, request, 500);
  return new PlacementError(500, "An unexpected error; the service's log has it under this request id.");
}

async function identify(deps: PlacementDeps, request: PlacementRequest): Promise<TokenIdentity | null> {
  if (request.path === "" || request.path === "/") return null;
  const identity = await deps.authenticate(request);
  if (identity === null)
    throw new PlacementError(401, "The request you have made requires authentication: send a valid x-auth-token.");
  return identity;
}

async function dispatch(
  deps: PlacementDeps,
  request: PlacementRequest,
  version: Microversion,
  identity: TokenIdentity | null,
): Promise<Answer> {
  checkContentType(request);
  const match = routeFor(request.method, request.path, version.minor);
  if (match.kind === "no-path") throw placementNotFound("");
  if (match.kind === "no-verb") {
    throw new PlacementError(405, "The method specified is not allowed for this resource.", {
      headers: { allow: match.allowed.join(", ") },
    });
  }
  const { route, params } = match;
  if (!version.has(route.since)) throw placementNotFound("");
  if (route.takesJson) requireJsonContent(request);
  if (route.givesJson) requireJsonAccepted(request);
  const query = new URLSearchParams(checkedQuery(request.query));
  authorize(deps.policy, route, identity, query);
  let json: { readonly value: unknown } | null = null;
  const call: PlacementCall = {
    request,
    version,
    identity: identity ?? { userId: null, projectId: null, systemScope: null, roles: [] },
    params,
    query,
    // Parsed on first use, because upstream looks for a provider before it reads the body.
    get json() {
      json ??= { value: route.takesJson ? parseJson(request) : undefined };
      return json.value;
    },
  };
  return route.handle(call, deps.store, deps.source);
}

function authorize(
  policy: Policy,
  route: PlacementRoute,
  identity: TokenIdentity | null,
  query: URLSearchParams,
): void {
  if (route.rule === null || identity === null) return;
  // The target of a request is the project that it names, where a route takes one (of several, the last counts, as in the handler); else
  // the caller's own project.
  const target =
    route.rule === RULES.usages
      ? { project_id: query.getAll("project_id").at(-1) }
      : { project_id: identity.projectId, user_id: identity.userId };
  if (!policy.allows(route.rule, identity, target)) {
    throw new PlacementError(403, `Policy does not allow ${route.rule} to be performed.`);
  }
}

/** Refuses bytes that are not UTF-8 instead of replacing them, and the character NUL, which databases do not store in text. */
function checkedQuery(query: string): string {
  if (query === "") return query;
  let decoded: string;
  try {
    decoded = decodeURIComponent(query.replaceAll("+", " "));
  } catch {
    throw new PlacementError(400, "Invalid query string parameters: the query string is not UTF-8");
  }
  if (decoded.includes("\0"))
    throw new PlacementError(400, "Invalid query string parameters: a value must not contain the character NUL");
  return query;
}

function checkContentType(request: PlacementRequest): void {
  const length = request.headers["content-length"];
  if (length !== undefined && length !== "" && !/^\d+$/.test(length))
    throw new PlacementError(400, "content-length header must be an integer");
  if (Number(length ?? 0) > 0 && !request.headers["content-type"])
    throw new PlacementError(400, "content-type header required when content-length > 0");
}

function requireJsonContent(request: PlacementRequest): void {
  const type = (request.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase();
  if (type !== "application/json")
    throw new PlacementError(415, `The media type ${type || "None"} is not supported, use application/json`);
}

function requireJsonAccepted(request: PlacementRequest): void {
  const accept = request.headers["accept"];
  if (accept === undefined || accept === "application/json" || accept.trim() === "") return;
  const fits = accept.split(",").some((entry) => {
    const [type, ...parameters] = entry
      .toLowerCase()
      .split(";")
      .map((part) => part.trim());
    const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return !refused && (type === "application/json" || type === "application/*" || type === "*/*" || type === "*");
  });
  if (!fits) throw new PlacementError(406, "Only application/json is provided");
}

function commonHeaders(request: PlacementRequest, version: Microversion | null): Record<string, string> {
  return {
    "x-openstack-request-id": request.requestId,
    ...(version === null ? {} : { [API_VERSION_HEADER]: `placement ${version}` }),
    vary: API_VERSION_HEADER,
  };
}

function respond(request: PlacementRequest, version: Microversion, answer: Answer): PlacementResponse {
  const body = answer.bytes ?? (answer.json === undefined ? "" : JSON.stringify(answer.json));
  const dated = answer.lastModifiedMs !== null && version.has(15);
  return {
    status: answer.status,
    headers: {
      ...commonHeaders(request, version),
      ...(body === "" ? {} : { "content-type": "application/json" }),
      ...(answer.location === undefined ? {} : { location: request.origin + answer.location }),
      ...(dated
        ? { "last-modified": new Date(answer.lastModifiedMs!).toUTCString(), "cache-control": "no-cache" }
        : {}),
      ...(answer.boundReached ? { "x-berth-search": "bound-reached" } : {}),
    },
    body,
    sent: answer.sent,
  };
}

function respondError(
  request: PlacementRequest,
  version: Microversion | null,
  error: PlacementError,
): PlacementResponse {
  const unversioned406 = error.status === 406 && version === null;
  const document = errorDocument(error, {
    method: request.method,
    requestId: request.requestId,
    withCode: version?.has(23) ?? false,
    extra: unversioned406 ? { max_version: `1.${MAX_MINOR}`, min_version: `1.${MIN_MINOR}` } : {},
  });
  const asPage = wantsPage(request.headers["accept"]);
  const headers = {
    ...commonHeaders(request, version),
    "content-type": asPage ? "text/html; charset=UTF-8" : "application/json",
    ...error.headers,
  };
  return { status: error.status, headers, body: asPage ? errorPage(document) : JSON.stringify(document) };
}

/** Whether the client is a browser, which accepts HTML and not JSON. All other clients get errors as JSON. */
function wantsPage(accept: string | undefined): boolean {
  return accept !== undefined && /text\/html/i.test(accept) && !/application\/(json|\*)|\*\/\*/i.test(accept);
}

function errorPage(document: ReturnType<typeof errorDocument>): string {
  const { status, title, detail } = document.errors[0] ?? {};
  const safe = (text: unknown): string =>
    String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<html><head><title>${safe(status)} ${safe(title)}</title></head><body><h1>${safe(status)} ${safe(title)}</h1>${safe(detail)}</body></html>`;
}
