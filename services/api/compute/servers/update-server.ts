import { Type } from "typebox";
import type { UserChanges } from "../../../../core/tasks/user-changes.ts";
import { changedSpec } from "../../../../core/tasks/user-changes.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { KnownCall } from "../../http/call.ts";
import type { Fault } from "../../http/fault.ts";
import { Name } from "../../http/schema.ts";
import { explainLargeSpec } from "../../http/spec-size.ts";
import type { RequestsPort } from "../../ports.ts";
import { readHostname } from "./hostname.ts";
import type { KnownZones } from "./known-zones.ts";
import { readPinnedZone } from "./pinned-zone.ts";
import { type RequestFinder, serverNotFound } from "./request-finder.ts";
import { Address, Description, DiskConfig, readAddresses, refuseUnknownFields } from "./server-fields.ts";

export const UpdateServerBody = Type.Object(
  {
    server: Type.Object(
      {
        name: Type.Optional(Name),
        hostname: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
        description: Type.Optional(Description),
        "OS-DCF:diskConfig": Type.Optional(DiskConfig),
        accessIPv4: Type.Optional(Address),
        accessIPv6: Type.Optional(Address),
        pinned_availability_zone: Type.Optional(Type.Union([Name, Type.Null()])),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type UpdateServerBody = Type.Static<typeof UpdateServerBody>;

export interface ChangeDeps {
  readonly store: Pick<RequestsPort, "changeServer">;
  readonly finder: RequestFinder;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Handles `PUT /servers/{id}`. It needs no host, and the server's cell only to pin it to a zone, so it works in every state of the server. An empty
 * body changes nothing.
 *
 * Source: Nova's api-ref, "Update Server".
 */
export async function updateServer(
  deps: ChangeDeps & { readonly cells: Cells; readonly zones: KnownZones },
  call: KnownCall,
  id: string,
  { server: asked }: UpdateServerBody,
): Promise<void> {
  refuseUnknownFields(asked, { description: [19], pinned_availability_zone: [104] }, call);
  const hostname = readHostname(asked.hostname, call.minor);
  const { name, description, "OS-DCF:diskConfig": diskConfig } = asked;
  const fields: UserChanges = {
    ...(name !== undefined && { name }),
    ...(hostname !== undefined && { hostname }),
    ...(description !== undefined && { description }),
    ...(diskConfig !== undefined && { manualDisk: diskConfig === "MANUAL" }),
    ...readAddresses(asked),
  };
  const record = await deps.finder.find(id, call);
  if (record === null || record.state === "deleted") throw serverNotFound(id);
  const zone = asked.pinned_availability_zone;
  const wanted = { ...fields, ...(zone !== undefined && (await readPinnedZone(deps, record, zone))) };
  if (Object.keys(wanted).length === 0) return;
  await writeChanges(deps, record.serverUuid, () => wanted);
}

/**
 * Writes changes of one server in one step. `change` gets its spec as it is and returns the fields to change, or a fault, with which nothing is
 * changed. Refuses changes that make the spec too large.
 */
export async function writeChanges(
  { store, clock }: Pick<ChangeDeps, "store" | "clock">,
  serverUuid: string,
  change: (spec: ReturnType<typeof changedSpec>) => UserChanges | Fault,
): Promise<void> {
  const refusals: Fault[] = [];
  const written = await store.changeServer(serverUuid, ({ spec, changes }) => {
    const wanted = change(spec);
    const refusal = wanted instanceof Error ? wanted : explainLargeSpec(changedSpec(spec, wanted));
    if (refusal !== null) refusals.push(refusal);
    return wanted instanceof Error || refusal !== null ? null : { ...changes, ...wanted, atMs: clock.now() };
  });
  if (written === null) throw serverNotFound(serverUuid);
  if (refusals[0] !== undefined) throw refusals[0];
}
