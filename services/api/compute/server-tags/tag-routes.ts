import { Type } from "typebox";
import type { UserChanges } from "../../../../core/tasks/user-changes.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, Fault } from "../../http/fault.ts";
import { placeOf } from "../../http/links.ts";
import { findChangeable, findServer } from "../servers/require-state.ts";
import { distinctTags, TAG_CHARACTERS_MAX, TAGS_MAX, Tags } from "../servers/server-fields.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { writeChanges } from "../servers/update-server.ts";

const of = (name: string) => ({ since: 26, rule: `os-server-tags:${name}` });

const ServerParams = Type.Object({ id: Type.String() });
const TagParams = Type.Object({ id: Type.String(), tag: Type.String() });
const TagsBody = Type.Object({ tags: Tags }, { additionalProperties: false });

/** `/servers/{id}/tags`, from microversion 2.26 on. Source: Nova's api-ref, "Server tags". */
export function registerTagRoutes(
  http: Http,
  deps: ServerDeps,
  options: { readonly prefix: string; readonly publicUrl: string | null },
): void {
  registerTagReads(http, deps);

  const all = { params: ServerParams, body: TagsBody, response: { 200: TagsBody } };
  http.put("/servers/:id/tags", { config: of("update_all"), schema: all }, async (request) => {
    const tags = distinctTags(request.body.tags);
    await write(deps, callOf(request), { id: request.params.id, action: "update tags" }, () => ({ tags }));
    return { tags };
  });

  http.put(
    "/servers/:id/tags/:tag",
    { config: of("update"), schema: { params: TagParams } },
    async (request, reply) => {
      const { id, tag } = request.params;
      const call = callOf(request);
      const isThere = await addTag(deps, call, id, tag);
      if (isThere) return reply.code(204).send();
      const { versioned } = placeOf(request, options.prefix, options.publicUrl);
      return reply
        .code(201)
        .header("location", `${versioned}/servers/${id}/tags/${encodeURIComponent(tag)}`)
        .send();
    },
  );

  http.delete(
    "/servers/:id/tags",
    { config: of("delete_all"), schema: { params: ServerParams } },
    async (request, reply) => {
      const { id } = request.params;
      await write(deps, callOf(request), { id, action: "delete tags" }, () => ({ tags: [] }));
      return reply.code(204).send();
    },
  );

  http.delete(
    "/servers/:id/tags/:tag",
    { config: of("delete"), schema: { params: TagParams } },
    async (request, reply) => {
      const { id, tag } = request.params;
      await write(deps, callOf(request), { id, action: "delete tag" }, (tags) =>
        tags.includes(tag) ? { tags: tags.filter((one) => one !== tag) } : noSuchTag("Instance", id, tag),
      );
      return reply.code(204).send();
    },
  );
}

function registerTagReads(http: Http, deps: ServerDeps): void {
  const list = { params: ServerParams, response: { 200: TagsBody } };
  http.get("/servers/:id/tags", { config: of("index"), schema: list }, async (request) => {
    return { tags: await tagsOf(deps, callOf(request), request.params.id) };
  });

  http.get("/servers/:id/tags/:tag", { config: of("show"), schema: { params: TagParams } }, async (request, reply) => {
    const { id, tag } = request.params;
    const tags = await tagsOf(deps, callOf(request), id);
    if (!tags.includes(tag)) throw noSuchTag("Server", id, tag);
    return reply.code(204).send();
  });
}

async function tagsOf(deps: ServerDeps, call: KnownCall, id: string): Promise<string[]> {
  return (await findServer(deps, call, id)).known.server.spec.tags;
}

/** Adds a tag, and returns whether the server had it already. */
async function addTag(deps: ServerDeps, call: KnownCall, id: string, tag: string): Promise<boolean> {
  let isThere = false;
  const add = (tags: readonly string[]) => {
    if (tags.length >= TAGS_MAX) return badRequest(`The number of tags exceeded the per-server limit ${TAGS_MAX}`);
    isThere = tags.includes(tag);
    return { tags: isThere ? tags : [...tags, tag] };
  };
  await write(deps, call, { id, action: "update tag" }, add, () => {
    if (tag === "" || tag.length > TAG_CHARACTERS_MAX || /[,/\p{Cs}]/u.test(tag))
      throw badRequest(
        `Tag '${tag.slice(0, TAG_CHARACTERS_MAX)}' is invalid. It must be a non empty string without characters '/' and ',', of at most ${TAG_CHARACTERS_MAX} characters.`,
      );
  });
  return isThere;
}

/** Changes the tags of a server in one step, so that of two concurrent calls neither loses its tags. */
async function write(
  deps: ServerDeps,
  call: KnownCall,
  of: { readonly id: string; readonly action: string },
  change: (tags: readonly string[]) => UserChanges | Fault,
  check: () => void = () => undefined,
): Promise<void> {
  const { serverUuid } = await findChangeable(deps, call, of);
  check();
  await writeChanges(deps, serverUuid, ({ tags }) => change(tags));
}

/** Nova's words: those of a look name a server, and those of a deletion an instance. */
const noSuchTag = (noun: "Server" | "Instance", id: string, tag: string): Fault =>
  new Fault(404, `${noun} ${id.slice(0, 100)} has no tag '${tag.slice(0, TAG_CHARACTERS_MAX)}'`);
