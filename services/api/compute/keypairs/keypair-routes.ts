import { Type } from "typebox";
import type { KeypairRecord, KeypairStore } from "../../../../core/stores/api/keypair-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { callOf, type KnownCall, requireRule } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, conflict, Fault, notFound } from "../../http/fault.ts";
import { nextLink, placeOf } from "../../http/links.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { AnyQuery } from "../../http/schema.ts";
import { isoMicroseconds } from "../../http/times.ts";
import type { ProjectLimits } from "../quotas/project-limits.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { generateKeypair } from "./generate-keypair.ts";
import { CreatedKeypairAnswer, CreateKeypairBody, KeypairAnswer, KeypairListAnswer } from "./keypair-schemas.ts";
import { type AskedKeypair, KEYPAIR_MINORS, readKeypair } from "./read-keypair.ts";

export interface KeypairDeps {
  readonly store: KeypairStore;
  readonly clock: Clock;
}

export interface KeypairRouteOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
  readonly limits: ProjectLimits;
}

const NameParams = Type.Object({ name: Type.String() });
const OF_ONE: QueryParameters = { user_id: KEYPAIR_MINORS.users };
const OF_LIST: QueryParameters = { ...OF_ONE, limit: KEYPAIR_MINORS.paging, marker: KEYPAIR_MINORS.paging };

/**
 * Registers `/os-keypairs`. A keypair belongs to its user, whatever the project. An admin may see, create and delete those of every user.
 */
export function registerKeypairRoutes(http: Http, deps: KeypairDeps, options: KeypairRouteOptions): void {
  http.get(
    "/os-keypairs",
    { config: { query: OF_LIST, rule: null }, schema: { querystring: AnyQuery, response: { 200: KeypairListAnswer } } },
    async (request) =>
      listKeypairs(
        deps.store,
        callOf(request),
        request.query,
        (marker, limit) =>
          nextLink(placeOf(request, options.prefix, options.publicUrl), "os-keypairs", request.query, {
            marker,
            limit,
          }),
        options.pageMax,
      ),
  );

  http.post(
    "/os-keypairs",
    { config: { rule: null }, schema: { body: CreateKeypairBody, response: { "2xx": CreatedKeypairAnswer } } },
    async (request, reply) => {
      const call = callOf(request);
      const asked = readKeypair(request.body, call.minor);
      const userId = ownerFor(call, asked.userId, "create");
      const made = await createKeypair(deps, asked, userId, await keypairsMaxOf(call, userId, options.limits));
      reply.code(call.minor >= KEYPAIR_MINORS.types ? 201 : 200);
      return {
        keypair: {
          ...briefView(made, call.minor),
          user_id: userId,
          ...(made.privateKey !== null && { private_key: made.privateKey }),
        },
      };
    },
  );

  http.get(
    "/os-keypairs/:name",
    {
      config: { query: OF_ONE, rule: null },
      schema: { params: NameParams, querystring: AnyQuery, response: { 200: KeypairAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const { name } = request.params;
      const userId = ownerOfQuery(call, request.query, "show");
      const keypair = await deps.store.keypair(userId, name);
      if (keypair === null) throw keypairNotFound(name, userId);
      return { keypair: keypairView(keypair, call.minor) };
    },
  );

  http.delete(
    "/os-keypairs/:name",
    { config: { query: OF_ONE, rule: null }, schema: { params: NameParams, querystring: AnyQuery } },
    async (request, reply) => {
      const call = callOf(request);
      const { name } = request.params;
      const userId = ownerOfQuery(call, request.query, "delete");
      if (!(await deps.store.deleteKeypair(userId, name))) throw keypairNotFound(name, userId);
      return reply.code(call.minor >= KEYPAIR_MINORS.types ? 204 : 202).send();
    },
  );
}

async function listKeypairs(
  store: KeypairStore,
  call: KnownCall,
  raw: Readonly<Record<string, string | readonly string[]>>,
  linkTo: (marker: string, limit: number) => { readonly rel: string; readonly href: string },
  pageMax: number,
) {
  const userId = ownerOfQuery(call, raw, "index");
  const query = new QueryReader(raw);
  const isPaged = call.minor >= KEYPAIR_MINORS.paging;
  const limit = isPaged ? query.limit(pageMax) : pageMax;
  const marker = isPaged ? (query.text("marker") ?? null) : null;
  const found = await store.keypairs({ userId, marker, limit });
  if (found === null) throw badRequest(`Marker ${marker?.slice(0, 255)} could not be found.`);
  const last = found.length === limit ? found.at(-1) : undefined;
  return {
    keypairs: found.map((keypair) => ({ keypair: briefView(keypair, call.minor) })),
    ...(isPaged && last !== undefined && { keypairs_links: [linkTo(last.name, limit)] }),
  };
}

/** Stores the key that was sent, or a new one. Refuses a text that is not a key (400), a name that is taken (409), and a key beyond the quota (403). */
async function createKeypair(deps: KeypairDeps, asked: AskedKeypair, userId: string, keypairsMax: number | null) {
  const { name, type } = asked;
  const createdAtMs = deps.clock.now();
  if (asked.publicKey === null) await refuseKnownEnd(deps.store, { userId, name }, keypairsMax);
  const generated = asked.publicKey === null ? await generateKeypair(type, userId, createdAtMs) : null;
  const publicKey = generated?.publicKey ?? asked.publicKey ?? "";
  const fingerprint = fingerprintOf(type, publicKey);
  if (fingerprint === null) {
    const kind = type === "ssh" ? "fingerprint" : "X509 fingerprint. Error message: Unable to load the certificate";
    throw badRequest(`Keypair data is invalid: failed to generate ${kind}`);
  }
  const keypair = { userId, name, type, publicKey, fingerprint, createdAtMs };
  const outcome = await deps.store.createKeypair(keypair, keypairsMax);
  if (outcome !== "created") throw notCreated(outcome, name);
  return { ...keypair, privateKey: generated?.privateKey ?? null };
}

/** Refuses what the store would refuse now, before a key is generated for it, which costs much. The store decides among concurrent calls. */
async function refuseKnownEnd(
  store: KeypairStore,
  { userId, name }: { readonly userId: string; readonly name: string },
  keypairsMax: number | null,
): Promise<void> {
  const own = keypairsMax === null ? [] : await store.keypairs({ userId, marker: null, limit: keypairsMax });
  if (keypairsMax !== null && (own?.length ?? 0) >= keypairsMax) throw notCreated("too-many", name);
  if ((await store.keypair(userId, name)) !== null) throw notCreated("name-taken", name);
}

const notCreated = (why: "too-many" | "name-taken", name: string): Fault =>
  why === "too-many"
    ? new Fault(403, "Quota exceeded, too many key pairs.")
    : conflict(`Key pair '${name}' already exists.`);

/** Returns how many keypairs a user may have, or null for any number. Source: Nova takes the limits of the caller's project. */
async function keypairsMaxOf({ identity }: KnownCall, userId: string, limits: ProjectLimits): Promise<number | null> {
  const { key_pairs: max } = await limits.ofUser({ projectId: identity.projectId, userId });
  return max < 0 ? null : max;
}

function ownerOfQuery(
  call: KnownCall,
  raw: Readonly<Record<string, string | readonly string[]>>,
  rule: string,
): string {
  const query = new QueryReader(raw);
  return ownerFor(call, call.minor >= KEYPAIR_MINORS.users ? query.all("user_id")[0] || null : null, rule);
}

/** Returns the user whose keypairs a call is about. Refuses callers whom the policy does not let do this to that user's keypairs. */
function ownerFor(call: KnownCall, asked: string | null, rule: string): string {
  const userId = asked ?? call.identity.userId;
  requireRule(call, `os-keypairs:${rule}`, { userId });
  return userId;
}

function keypairNotFound(name: string, userId: string): Fault {
  return notFound(`Keypair ${name.slice(0, 255)} not found for user ${userId}`);
}

function briefView(
  { name, publicKey, fingerprint, type }: Pick<KeypairRecord, "name" | "publicKey" | "fingerprint" | "type">,
  minor: number,
) {
  return { name, public_key: publicKey, fingerprint, ...(minor >= KEYPAIR_MINORS.types && { type }) };
}

function keypairView(keypair: KeypairRecord, minor: number) {
  return {
    ...briefView(keypair, minor),
    user_id: keypair.userId,
    id: keypair.id,
    created_at: isoMicroseconds(keypair.createdAtMs),
    updated_at: null,
    deleted: false,
    deleted_at: null,
  };
}
