import { Type } from "typebox";
import { callOf, type KnownCall } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, notFound } from "../../http/fault.ts";
import { Metadata } from "../../http/schema.ts";
import { explainManyItems } from "../quotas/over-quota.ts";
import { findChangeable, findServer } from "../servers/require-state.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { writeChanges } from "../servers/update-server.ts";

const of = (name: string) => ({ rule: `server-metadata:${name}` });
const ServerParams = Type.Object({ id: Type.String() });
const ItemParams = Type.Object({ id: Type.String(), key: Type.String() });
const AllBody = Type.Object({ metadata: Metadata }, { additionalProperties: false });
const OneBody = Type.Object({ meta: Metadata }, { additionalProperties: false });

type Items = Readonly<Record<string, string>>;

/** `/servers/{id}/metadata`. Source: Nova's api-ref, "Server metadata". */
export function registerMetadataRoutes(http: Http, deps: ServerDeps): void {
  const all = { response: { 200: AllBody } };
  const one = { response: { 200: OneBody } };

  http.get(
    "/servers/:id/metadata",
    { config: of("index"), schema: { params: ServerParams, ...all } },
    async (request) => {
      return { metadata: await itemsOf(deps, callOf(request), request.params.id) };
    },
  );

  http.post(
    "/servers/:id/metadata",
    { config: of("create"), schema: { params: ServerParams, body: AllBody, ...all } },
    async (request) => {
      const { metadata } = request.body;
      return {
        metadata: await write(deps, callOf(request), request.params.id, (items) => ({ ...items, ...metadata })),
      };
    },
  );

  http.put(
    "/servers/:id/metadata",
    { config: of("update_all"), schema: { params: ServerParams, body: AllBody, ...all } },
    async (request) => {
      const { metadata } = request.body;
      return { metadata: await write(deps, callOf(request), request.params.id, () => metadata) };
    },
  );

  http.get(
    "/servers/:id/metadata/:key",
    { config: of("show"), schema: { params: ItemParams, ...one } },
    async (request) => {
      const { id, key } = request.params;
      return { meta: { [key]: itemIn(await itemsOf(deps, callOf(request), id), key) } };
    },
  );

  http.put(
    "/servers/:id/metadata/:key",
    { config: of("update"), schema: { params: ItemParams, body: OneBody, ...one } },
    async (request) => {
      const { id, key } = request.params;
      const { meta } = request.body;
      if (Object.keys(meta).length !== 1)
        throw badRequest("Invalid input for field/attribute meta. It has exactly one item.");
      const call = callOf(request);
      await itemsOf(deps, call, id);
      if (!Object.hasOwn(meta, key)) throw badRequest("Request body and URI mismatch");
      await write(deps, call, id, (items) => ({ ...items, ...meta }));
      return { meta };
    },
  );

  http.delete(
    "/servers/:id/metadata/:key",
    { config: of("delete"), schema: { params: ItemParams } },
    async (request, reply) => {
      const { id, key } = request.params;
      const call = callOf(request);
      itemIn(await itemsOf(deps, call, id), key);
      await remove(deps, call, id, key);
      return reply.code(204).send();
    },
  );
}

async function itemsOf(deps: ServerDeps, call: KnownCall, id: string): Promise<Items> {
  const { known } = await findServer(deps, call, id);
  return known.server.spec.metadata;
}

function itemIn(items: Items, key: string): string {
  const item = Object.hasOwn(items, key) ? items[key] : undefined;
  if (item === undefined) throw notFound("Metadata item was not found");
  return item;
}

/**
 * Changes the metadata of a server in one step, so that of two concurrent calls neither loses its items. Refuses more items than the quota
 * of the caller's project allows.
 */
async function write(deps: ServerDeps, call: KnownCall, id: string, change: (items: Items) => Items): Promise<Items> {
  const { serverUuid } = await findChangeable(deps, call, { id, action: "update metadata" });
  const limits = await deps.limits.ofProject(call.identity.projectId);
  let written: Items = {};
  await writeChanges(deps, serverUuid, ({ metadata }) => {
    written = change(metadata);
    return explainManyItems(written, limits) ?? { metadata: written };
  });
  return written;
}

/** Removes an item, also from a server that has more items than the quota allows by now. */
async function remove(deps: ServerDeps, call: KnownCall, id: string, key: string): Promise<void> {
  const { serverUuid } = await findChangeable(deps, call, { id, action: "delete metadata" });
  await writeChanges(deps, serverUuid, ({ metadata: { [key]: _, ...others } }) => ({ metadata: others }));
}
