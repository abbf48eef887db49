import { Type } from "typebox";
import { callOf } from "../../http/call.ts";
import { carrierFor, type Http } from "../../http/create-http.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { AnyQuery } from "../../http/schema.ts";
import { findServer } from "../servers/require-state.ts";
import type { RouteOptions, ServerDeps } from "../servers/server-routes.ts";
import { attachVolume } from "./attach-volume.ts";
import {
  AttachmentAnswer,
  AttachmentListAnswer,
  AttachVolumeBody,
  UpdateAttachmentBody,
} from "./attachment-schemas.ts";
import { attachmentView, newAttachmentView } from "./attachment-view.ts";
import { detachVolume } from "./detach-volume.ts";
import { findAttachment } from "./find-attachment.ts";
import { updateAttachment } from "./update-attachment.ts";

/** From this microversion on, attaching is answered with 202 and without a body. */
const ASYNC_FROM_MINOR = 101;
const QUERY = { limit: 1, offset: 1 };

const ServerParams = Type.Object({ id: Type.String() });
const VolumeParams = Type.Object({ id: Type.String(), volumeId: Type.String() });
const NoBody = Type.Unsafe<undefined>({ type: "null" });
const of = (name: string) => ({ rule: `os-volumes-attachments:${name}` });
const URL = "/servers/:id/os-volume_attachments";

/** `/servers/{id}/os-volume_attachments`: attaches and detaches the volumes of a server. Source: Nova's `VolumeAttachmentController`. */
export function registerAttachmentRoutes(http: Http, deps: ServerDeps, options: Pick<RouteOptions, "pageMax">): void {
  registerReads(http, deps, options);

  const attach = { params: ServerParams, body: AttachVolumeBody, response: { 200: AttachmentAnswer, 202: NoBody } };
  http.post(URL, { config: of("create"), schema: attach }, async (request, reply) => {
    const call = callOf(request);
    const context = { call, carrier: carrierFor(request) };
    const { volumeId, attachment } = await attachVolume(deps, context, request.params.id, request.body);
    if (call.minor >= ASYNC_FROM_MINOR) return reply.code(202).send(undefined);
    return { volumeAttachment: newAttachmentView(volumeId, attachment, call.minor) };
  });

  http.put(
    `${URL}/:volumeId`,
    { config: { rule: null }, schema: { params: VolumeParams, body: UpdateAttachmentBody } },
    async (request, reply) => {
      const context = { call: callOf(request), carrier: carrierFor(request) };
      await updateAttachment(deps, context, request.params, request.body);
      return reply.code(202).send();
    },
  );

  http.delete(
    `${URL}/:volumeId`,
    { config: of("delete"), schema: { params: VolumeParams } },
    async (request, reply) => {
      const { id, volumeId } = request.params;
      await detachVolume(deps, { call: callOf(request), carrier: carrierFor(request) }, id, volumeId);
      return reply.code(202).send();
    },
  );
}

function registerReads(http: Http, deps: ServerDeps, { pageMax }: Pick<RouteOptions, "pageMax">): void {
  const list = {
    config: { ...of("index"), query: QUERY },
    schema: { params: ServerParams, querystring: AnyQuery, response: { 200: AttachmentListAnswer } },
  };
  http.get(URL, list, async (request) => {
    const call = callOf(request);
    const query = new QueryReader(request.query);
    const [offset, limit] = [query.wholeNumber("offset") ?? 0, query.limit(pageMax)];
    const { record } = await findServer(deps, call, request.params.id);
    const volumes = (await deps.volumes?.volumesOfServers([record.serverUuid])) ?? [];
    const views = volumes.flatMap(({ id, attachment }) =>
      attachment === null ? [] : attachmentView(id, attachment, call.minor),
    );
    return { volumeAttachments: views.slice(offset, offset + limit) };
  });

  const show = { params: VolumeParams, querystring: AnyQuery, response: { 200: AttachmentAnswer } };
  http.get(`${URL}/:volumeId`, { config: of("show"), schema: show }, async (request) => {
    const call = callOf(request);
    const { id, volumeId } = request.params;
    const { record } = await findServer(deps, call, id);
    const { id: stored, attachment } = await findAttachment(
      deps.volumes,
      { uuid: record.serverUuid, asked: id },
      volumeId,
    );
    return { volumeAttachment: attachmentView(stored, attachment, call.minor) };
  });
}
