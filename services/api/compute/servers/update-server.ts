import { Type } from "typebox";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { invalidField } from "../../http/fault.ts";
import { Name, NullableString } from "../../http/schema.ts";
import { refuseLargeSpec } from "../../http/spec-size.ts";
import type { RequestsPort } from "../../ports.ts";
import { findTarget } from "../server-actions/action-target.ts";
import { patchServer } from "../server-interfaces/patch-server.ts";
import { readHostname } from "./hostname.ts";

export const UpdateServerBody = Type.Object(
  {
    server: Type.Object(
      {
        name: Type.Optional(Name),
        hostname: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
        description: Type.Optional(NullableString),
        "OS-DCF:diskConfig": Type.Optional(Type.Literal("AUTO")),
        accessIPv4: Type.Optional(Type.Unsafe<null | "">({ enum: [null, ""] })),
        accessIPv6: Type.Optional(Type.Unsafe<null | "">({ enum: [null, ""] })),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type UpdateServerBody = Type.Static<typeof UpdateServerBody>;

/**
 * Handles `PUT /servers/{id}`, which changes a server's name or host name in its cell. Unlike in Nova, the server must be on a host and
 * have no operation under way. An empty body changes nothing.
 */
export async function updateServer(
  deps: Parameters<typeof findTarget>[0] & { readonly store: Pick<RequestsPort, "rename"> },
  call: KnownCall,
  id: string,
  { server: asked }: UpdateServerBody,
): Promise<void> {
  const { name, description } = asked;
  const hostname = readHostname(asked.hostname, call.minor);
  if (description != null && description !== "")
    throw invalidField("description", description, "Berth keeps no descriptions.");
  if (name === undefined && hostname === undefined) return;
  const changed = (spec: ServerSpec): ServerSpec => ({
    ...spec,
    ...(name !== undefined && { name }),
    ...(hostname !== undefined && { hostname }),
  });
  const target = await findTarget(deps, call, { id, action: "update" });
  refuseLargeSpec(changed(target.server.spec));
  await patchServer(target, async ({ server }) => ({ spec: changed(server.spec), more: [], less: [] }));
  // After the cell, which may refuse. Where this is never reached, lists find the server by its former name until the call is repeated.
  if (name !== undefined) await deps.store.rename(target.server.uuid, name);
}
