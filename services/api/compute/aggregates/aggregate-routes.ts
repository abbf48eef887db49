import { Type } from "typebox";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import type { ImagePort } from "../servers/read-image.ts";
import {
  AggregateActionBody,
  AggregateAnswer,
  AggregateListAnswer,
  CreateAggregateBody,
  NewAggregateAnswer,
  UpdateAggregateBody,
} from "./aggregate-schemas.ts";
import { aggregateView, newAggregateView } from "./aggregate-view.ts";
import { CacheImagesBody, cacheImages } from "./cache-images.ts";
import {
  addHost,
  createAggregate,
  deleteAggregate,
  findAggregate,
  readAggregateId,
  removeHost,
  setAggregateMetadata,
  updateAggregate,
} from "./change-aggregates.ts";
import type { OperatorDeps } from "./operator-deps.ts";

const ACTIONS = new Map(
  ["add_host", "remove_host", "set_metadata"].map((action) => [action, { rule: `os-aggregates:${action}` }]),
);

const IdParams = Type.Object({ id: Type.String() });

/**
 * `/os-aggregates`: admins only. Source: Nova's api-ref, "Host aggregates"; the status is 200 where that page says so, for the sake of
 * old clients.
 */
export function registerAggregateRoutes(
  http: Http,
  deps: OperatorDeps & { readonly images: ImagePort | null },
  { imageRule }: { readonly imageRule: ImageRule },
): void {
  registerReads(http, deps);

  const images = { params: IdParams, body: CacheImagesBody };
  http.post(
    "/os-aggregates/:id/images",
    { config: { rule: "compute:aggregates:images", since: 81 }, schema: images },
    async (request, reply) => {
      const id = readAggregateId(request.params.id);
      await cacheImages(deps, callOf(request), { id, rule: imageRule, ...request.body });
      return reply.code(202).send();
    },
  );

  const create = { body: CreateAggregateBody, response: { 200: NewAggregateAnswer } };
  http.post("/os-aggregates", { config: { rule: "os-aggregates:create" }, schema: create }, async (request) => {
    const call = callOf(request);
    const { name, availability_zone: zone } = request.body.aggregate;
    return { aggregate: newAggregateView(await createAggregate(deps, { name, zone: zone ?? null }), call.minor) };
  });

  const update = { params: IdParams, body: UpdateAggregateBody, response: { 200: AggregateAnswer } };
  http.put("/os-aggregates/:id", { config: { rule: "os-aggregates:update" }, schema: update }, async (request) => {
    const call = callOf(request);
    const { name, availability_zone: zone } = request.body.aggregate;
    const updated = await updateAggregate(deps, readAggregateId(request.params.id), { name, zone });
    return { aggregate: aggregateView(updated, call.minor) };
  });

  const deletion = { config: { rule: "os-aggregates:delete" }, schema: { params: IdParams } };
  http.delete("/os-aggregates/:id", deletion, async (request, reply) => {
    await deleteAggregate(deps, readAggregateId(request.params.id));
    return reply.code(200).send();
  });

  const action = { params: IdParams, body: AggregateActionBody, response: { 200: AggregateAnswer } };
  http.post("/os-aggregates/:id/action", { config: { actions: ACTIONS }, schema: action }, async (request) => {
    const call = callOf(request);
    const { add_host, remove_host, set_metadata } = request.body;
    const id = readAggregateId(request.params.id);
    if (add_host !== undefined) return { aggregate: aggregateView(await addHost(deps, id, add_host.host), call.minor) };
    if (remove_host !== undefined)
      return { aggregate: aggregateView(await removeHost(deps, id, remove_host.host), call.minor) };
    const changed = await setAggregateMetadata(deps, id, set_metadata?.metadata ?? {});
    return { aggregate: aggregateView(changed, call.minor) };
  });
}

function registerReads(http: Http, deps: OperatorDeps): void {
  const list = { querystring: AnyQuery, response: { 200: AggregateListAnswer } };
  http.get("/os-aggregates", { config: { rule: "os-aggregates:index" }, schema: list }, async (request) => {
    const call = callOf(request);
    const aggregates = await deps.stores.aggregates.aggregates();
    return { aggregates: aggregates.map((aggregate) => aggregateView(aggregate, call.minor)) };
  });

  const show = { params: IdParams, querystring: AnyQuery, response: { 200: AggregateAnswer } };
  http.get("/os-aggregates/:id", { config: { rule: "os-aggregates:show" }, schema: show }, async (request) => {
    const call = callOf(request);
    return { aggregate: aggregateView(await findAggregate(deps, readAggregateId(request.params.id)), call.minor) };
  });
}
