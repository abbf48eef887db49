import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import type { OperationKind } from "../../../core/tasks/operation-kinds.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { findTarget } from "../compute/server-actions/action-target.ts";
import { beginInCell } from "../compute/server-actions/begin-in-cell.ts";
import type { ServerDeps } from "../compute/servers/server-routes.ts";
import { callerOf, callOf, type KnownCall } from "../http/call.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import { carrierFor, type Http } from "../http/create-http.ts";
import { conflict, notFound } from "../http/fault.ts";

const Params = Type.Object({ server: Type.String(), volume: Type.String() });
const SettleBody = Type.Object(
  { guest_uses: Type.Optional(Type.Union([Type.Literal("own"), Type.Literal("other")])) },
  { additionalProperties: false },
);
const SettleAnswer = Type.Object({
  server: Type.String(),
  host: Type.String(),
  volume: Type.String(),
  replaced_by: Type.String(),
  /** The operation that the server's cell carries out, as instance actions and `berth explain` show it. */
  operation: Type.String(),
});

const KINDS = {
  own: "settle-volume-own",
  other: "settle-volume-other",
} as const satisfies Readonly<Record<string, OperationKind>>;

export type SettleVolumeDeps = Pick<ServerDeps, "finder" | "cells" | "movesStore" | "events">;

/**
 * `POST /servers/{server}/volumes/{volume}/settle`: settles which of two volumes a server's guest uses, after the replacement of one by the other was broken off.
 * Without `guest_uses` the server's host is asked. Otherwise that is the operator's word, for which the host must be forced down. Admins only.
 */
export function registerVolumeSettling(http: Http, deps: SettleVolumeDeps): void {
  const settle = { params: Params, body: SettleBody, response: { 202: SettleAnswer } };
  const config = { rule: "berth:volumes:settle" };
  http.post("/servers/:server/volumes/:volume/settle", { config, schema: settle }, async (request, reply) => {
    const { server, volume } = request.params;
    const context = { call: callOf(request), carrier: carrierFor(request) };
    return reply.code(202).send(await settleVolume(deps, context, { server, volume, uses: request.body.guest_uses }));
  });
}

/**
 * Settles a volume in doubt, or has one that is not in doubt connected to the guest that the source of an unconfirmed move keeps, which may lack it. Refuses a server that does not exist or does not have the volume (404), and a volume that is neither, or whose server's state does not allow it (409).
 */
async function settleVolume(
  deps: SettleVolumeDeps,
  { call, carrier }: { readonly call: KnownCall; readonly carrier: Readonly<Record<string, string>> },
  asked: { readonly server: string; readonly volume: string; readonly uses: keyof typeof KINDS | undefined },
) {
  const target = await findTarget(deps, call, { id: asked.server, action: "settle_volume" });
  const { uuid, host, spec } = target.server;
  const id = storedSpelling(asked.volume);
  const volume = spec.volumes.find(({ volumeId, replacedBy }) => [volumeId, replacedBy].includes(id));
  if (volume === undefined)
    throw notFound(`Server ${uuid} has no volume ${asked.volume.slice(0, 100)}: the audit names the volumes in doubt.`);
  const { volumeId, replacedBy } = volume;
  // The guest that the source of a move keeps may lack a volume that is not in doubt, or no longer, and then the move is not reverted.
  const isReconnected = replacedBy === "" && target.server.status === "VERIFY_RESIZE" && asked.uses === undefined;
  if (replacedBy === "" && !isReconnected)
    throw conflict(
      `Volume ${volumeId} of server ${uuid} is not in doubt: its guest uses it, so there is nothing to do.`,
    );
  const operation = randomUUID();
  const settling = asked.uses === undefined ? "settle-volume" : KINDS[asked.uses];
  const kind = isReconnected ? "reconnect-volume-unconfirmed" : settling;
  // The server is read again before the operation begins.
  const after = (now: ServerSpec) => {
    if (now.volumes.some((one) => one.volumeId === volumeId && one.replacedBy === replacedBy)) return now;
    throw conflict(`Volume ${volumeId} of server ${uuid} has just been settled or detached.`);
  };
  await beginInCell(deps, target, { kind, carrier, taskId: operation, askedBy: callerOf(call), volume, after });
  return { server: uuid, host: host ?? "", volume: volumeId, replaced_by: replacedBy, operation };
}
