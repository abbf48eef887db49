import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { VolumeRecord } from "../../../core/stores/api/volume-store.ts";
import { callOf } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, notFound } from "../http/fault.ts";
import { placeOf, type ResourceLink } from "../http/links.ts";
import { AnyQuery, readFlag } from "../http/schema.ts";
import { changeVolume, createVolume, deleteVolume, findVolume, type VolumeDeps } from "./change-volumes.ts";
import { listVolumes } from "./list-volumes.ts";
import {
  CreateVolumeBody,
  METADATA_KEY,
  UpdateVolumeBody,
  VolumeActionBody,
  VolumeMetaBody,
  VolumeMetadataBody,
} from "./volume-schemas.ts";
import { briefVolumeView, changedVolumeView, volumeView } from "./volume-view.ts";

const IdParams = Type.Object({ id: Type.String() });
const KeyParams = Type.Object({ id: Type.String(), key: Type.String({ pattern: METADATA_KEY }) });

export interface VolumeRouteOptions {
  readonly pageMax: number;
  readonly publicUrl: string | null;
}

/**
 * Registers `/v3/volumes` of the Block Storage API. A volume has no contents before a server writes it.
 *
 * Source: Cinder's api-ref v3, "Volumes".
 */
export function registerVolumeRoutes(http: Http, deps: VolumeDeps, options: VolumeRouteOptions): void {
  const { store } = deps;
  const linksOf = (request: FastifyRequest, { id }: VolumeRecord): ResourceLink[] => {
    const { versioned } = placeOf(request, "/volume", options.publicUrl);
    return [
      { rel: "self", href: `${versioned}/v3/volumes/${id}` },
      { rel: "bookmark", href: `${versioned}/volumes/${id}` },
    ];
  };
  for (const [path, view] of [
    ["volumes", briefVolumeView],
    ["volumes/detail", volumeView],
  ] as const)
    http.get(`/v3/${path}`, { schema: { querystring: AnyQuery } }, async (request) => {
      const { volumes, next } = await listVolumes(store, callOf(request), request, { ...options, path });
      const views = volumes.map((volume) => view(volume, linksOf(request, volume)));
      return { volumes: views, ...(next.length > 0 && { volumes_links: next }) };
    });

  http.post("/v3/volumes", { schema: { body: CreateVolumeBody } }, async (request, reply) => {
    const volume = await createVolume(deps, callOf(request), request.body);
    reply.code(202);
    return { volume: changedVolumeView(volume, linksOf(request, volume)) };
  });

  http.get("/v3/volumes/:id", { schema: { params: IdParams } }, async (request) => {
    const volume = await findVolume(store, callOf(request), request.params.id);
    return { volume: volumeView(volume, linksOf(request, volume)) };
  });

  http.put("/v3/volumes/:id", { schema: { params: IdParams, body: UpdateVolumeBody } }, async (request) => {
    const { display_name, display_description, metadata, ...asked } = request.body.volume;
    const { name = display_name, description = display_description } = asked;
    const volume = await changeVolume(deps, callOf(request), request.params.id, () => ({
      ...(name != null && { name }),
      ...(description !== undefined && { description }),
      ...(metadata !== undefined && { metadata }),
    }));
    return { volume: changedVolumeView(volume, linksOf(request, volume)) };
  });

  http.delete("/v3/volumes/:id", { schema: { params: IdParams, querystring: AnyQuery } }, async (request, reply) => {
    await deleteVolume(deps, callOf(request), request.params.id);
    return reply.code(202).send();
  });

  http.post(
    "/v3/volumes/:id/action",
    { schema: { params: IdParams, body: VolumeActionBody } },
    async (request, reply) => {
      const isBootable = readFlag(request.body["os-set_bootable"].bootable);
      if (isBootable === null)
        throw badRequest("Invalid input for field/attribute bootable: it is neither true nor false.");
      await changeVolume(deps, callOf(request), request.params.id, () => ({ isBootable }));
      return reply.code(200).send();
    },
  );
  registerMetadata(http, deps);
}

function registerMetadata(http: Http, deps: VolumeDeps): void {
  const url = "/v3/volumes/:id/metadata";
  http.get(url, { schema: { params: IdParams } }, async (request) => ({
    metadata: (await findVolume(deps.store, callOf(request), request.params.id)).metadata,
  }));

  for (const method of ["POST", "PUT"] as const)
    http.route({
      method,
      url,
      schema: { params: IdParams, body: VolumeMetadataBody },
      handler: async (request) => {
        const asked = request.body.metadata;
        const change = ({ metadata }: VolumeRecord) => ({
          metadata: method === "POST" ? { ...metadata, ...asked } : asked,
        });
        return { metadata: (await changeVolume(deps, callOf(request), request.params.id, change)).metadata };
      },
    });

  http.get(`${url}/:key`, { schema: { params: KeyParams } }, async (request) => {
    const { id, key } = request.params;
    return { meta: itemOf(await findVolume(deps.store, callOf(request), id), key) };
  });

  http.put(`${url}/:key`, { schema: { params: KeyParams, body: VolumeMetaBody } }, async (request) => {
    const { id, key } = request.params;
    const { meta } = request.body;
    const volume = await changeVolume(deps, callOf(request), id, ({ metadata }) => {
      const [named, ...others] = Object.keys(meta);
      if (named !== key || others.length > 0) throw badRequest("Request body and URI mismatch");
      return { metadata: { ...metadata, ...meta } };
    });
    return { meta: itemOf(volume, key) };
  });

  http.delete(`${url}/:key`, { schema: { params: KeyParams } }, async (request, reply) => {
    const { id, key } = request.params;
    await changeVolume(deps, callOf(request), id, (volume) => {
      itemOf(volume, key);
      const { [key]: _, ...rest } = volume.metadata;
      return { metadata: rest };
    });
    return reply.code(200).send();
  });
}

function itemOf({ id, metadata }: VolumeRecord, key: string): Record<string, string> {
  const value = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
  if (value === undefined) throw notFound(`Volume ${id} has no metadata with key ${key}.`);
  return { [key]: value };
}
