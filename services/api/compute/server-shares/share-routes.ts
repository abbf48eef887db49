import { Type } from "typebox";
import type { ServerStatus } from "../../../../core/tasks/server.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { conflict, notFound, unavailable } from "../../http/fault.ts";
import { AnyQuery, Uuid } from "../../http/schema.ts";
import { findServer } from "../servers/require-state.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { VM_STATES } from "../servers/shown-state.ts";

const of = (name: string) => ({ since: 97, rule: `os-server-shares:${name}` });
const ofRead = (name: string) => ({ ...of(name), query: {} });

const ServerParams = Type.Object({ id: Type.String() });
const ShareParams = Type.Object({ id: Type.String(), shareId: Type.String() });
const Body = Type.Object(
  {
    share: Type.Object(
      {
        share_id: Uuid,
        tag: Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: "^[a-zA-Z0-9-]*$" })),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
const ListAnswer = Type.Object({ shares: Type.Array(Type.Object({ share_id: Type.String() })) });

const TO_ATTACH: ReadonlySet<ServerStatus> = new Set(["SHUTOFF"]);
const TO_DETACH: ReadonlySet<ServerStatus> = new Set(["SHUTOFF", "ERROR"]);

/**
 * `/servers/{id}/shares`, from microversion 2.97 on. No driver passes a file system of its host on to a guest, so no server has a share, and one is
 * refused as by a Nova whose host has no virtiofs. Source: Nova's `ServerSharesController`, and its `check_shares_supported`.
 */
export function registerShareRoutes(http: Http, deps: ServerDeps): void {
  const list = {
    config: ofRead("index"),
    schema: { params: ServerParams, querystring: AnyQuery, response: { 200: ListAnswer } },
  };
  http.get("/servers/:id/shares", list, async (request) => {
    const call = callOf(request);
    await findServer(deps, call, request.params.id);
    return { shares: [] };
  });

  http.post(
    "/servers/:id/shares",
    { config: of("create"), schema: { params: ServerParams, body: Body } },
    async (request) => {
      const { id } = request.params;
      await findInState(deps, callOf(request), { id, action: "create share", allowed: TO_ATTACH });
      throw conflict("Feature not supported because either compute or instance are not configured correctly.");
    },
  );

  const one = { params: ShareParams, querystring: AnyQuery };
  http.get("/servers/:id/shares/:shareId", { config: ofRead("show"), schema: one }, async (request) => {
    const call = callOf(request);
    await findServer(deps, call, request.params.id);
    throw noSuchShare(request.params.shareId);
  });

  http.delete("/servers/:id/shares/:shareId", { config: ofRead("delete"), schema: one }, async (request) => {
    const { id, shareId } = request.params;
    await findInState(deps, callOf(request), { id, action: "delete share", allowed: TO_DETACH });
    throw noSuchShare(shareId);
  });
}

/** Finds a server whose shares would be changed. Refuses one in a status that does not allow the change. */
async function findInState(
  deps: ServerDeps,
  call: KnownCall,
  {
    id,
    action,
    allowed,
  }: { readonly id: string; readonly action: string; readonly allowed: ReadonlySet<ServerStatus> },
): Promise<void> {
  const { record, known } = await findServer(deps, call, id);
  if (known.unreachable) throw unavailable(`Cell ${record.cell}, where the server lives, does not answer.`);
  const { status } = known.server;
  if (!allowed.has(status))
    throw conflict(`Cannot '${action}' instance ${record.serverUuid} while it is in vm_state ${VM_STATES[status]}`);
}

const noSuchShare = (id: string) => notFound(`Share ${id.slice(0, 100)} could not be found.`);
