import { randomUUID } from "node:crypto";
import { type AggregateRecord, ZONE_KEY } from "../../../../core/scheduling/aggregate-record.ts";
import { type ZoneConflict, zoneOfMetadata } from "../../../../core/stores/api/aggregate-store.ts";
import { badRequest, conflict, type Fault, notFound } from "../../http/fault.ts";
import { countServers, findHost } from "./find-host.ts";
import type { OperatorDeps } from "./operator-deps.ts";

/** Reads an aggregate's id. Throws 400 for text that is not an integer of at most 15 digits. No aggregate has a negative id. */
export function readAggregateId(text: string): number {
  if (!/^-?\d{1,15}$/.test(text))
    throw badRequest(`Invalid input received: id must be an integer, not ${text.slice(0, 50)}`);
  return Number(text);
}

export function aggregateNotFound(id: number): Fault {
  return notFound(`Aggregate ${id} could not be found.`);
}

export async function findAggregate({ stores }: OperatorDeps, id: number): Promise<AggregateRecord> {
  const aggregate = await stores.aggregates.aggregate(id);
  if (aggregate === null) throw aggregateNotFound(id);
  return aggregate;
}

export async function createAggregate(
  { stores }: OperatorDeps,
  { name, zone }: { readonly name: string; readonly zone: string | null },
): Promise<AggregateRecord> {
  const outcome = await stores.aggregates.create({ uuid: randomUUID(), name: name.trim(), zone });
  if (outcome.kind === "name-taken") throw nameTaken(name);
  return outcome.aggregate;
}

/** Updates an aggregate. Refuses a new zone while its hosts have servers, because the servers' zone would change. */
export async function updateAggregate(
  deps: OperatorDeps,
  id: number,
  change: { readonly name?: string | undefined; readonly zone?: string | null | undefined },
): Promise<AggregateRecord> {
  const { name, zone } = change;
  const before = await findAggregate(deps, id);
  await refuseZoneOfServers(deps, before, zone);
  const outcome = await deps.stores.aggregates.update(id, {
    ...(name !== undefined && { name: name.trim() }),
    ...(typeof zone === "string" && { zone }),
  });
  switch (outcome.kind) {
    case "written":
      return outcome.aggregate;
    case "unknown":
      throw aggregateNotFound(id);
    case "name-taken":
      throw nameTaken(name ?? "");
    case "zone-conflict":
      throw badRequest(describeConflict(outcome));
    default:
      return outcome satisfies never;
  }
}

export async function setAggregateMetadata(
  deps: OperatorDeps,
  id: number,
  metadata: Readonly<Record<string, string | null>>,
): Promise<AggregateRecord> {
  const before = await findAggregate(deps, id);
  await refuseZoneOfServers(deps, before, Object.hasOwn(metadata, ZONE_KEY) ? metadata[ZONE_KEY] : undefined);
  const outcome = await deps.stores.aggregates.setMetadata(id, metadata);
  if (outcome.kind === "unknown") throw aggregateNotFound(id);
  if (outcome.kind === "zone-conflict") throw badRequest(describeConflict(outcome));
  return outcome.aggregate;
}

export async function deleteAggregate({ stores }: OperatorDeps, id: number): Promise<void> {
  const outcome = await stores.aggregates.delete(id);
  if (outcome.kind === "unknown") throw aggregateNotFound(id);
  if (outcome.kind === "has-hosts") throw badRequest(`Cannot delete aggregate ${id}: it still has hosts.`);
}

/** Adds the host and mirrors the change into its cell. A cell that is unreachable gets it later. */
export async function addHost(deps: OperatorDeps, id: number, name: string): Promise<AggregateRecord> {
  const aggregate = await findAggregate(deps, id);
  const { host } = await findHost(deps.cells, name);
  const zone = zoneOfMetadata(aggregate.metadata);
  if (zone !== null) {
    const others = await zonesOfHost(deps, host.name, id);
    if (!others.has(zone)) await refuseMove(deps, host.name, { from: [...others][0] ?? null, to: zone });
  }
  const outcome = await deps.stores.aggregates.addHost(id, host.name);
  if (outcome.kind === "unknown") throw aggregateNotFound(id);
  if (outcome.kind === "host-present") throw conflict(`Aggregate ${id} already has host ${name}.`);
  if (outcome.kind === "zone-conflict") throw conflict(describeConflict(outcome));
  await deps.syncer.syncSoon([name]);
  return outcome.aggregate;
}

/** Removes a host, even one that no longer exists in any cell. */
export async function removeHost(deps: OperatorDeps, id: number, name: string): Promise<AggregateRecord> {
  const aggregate = await findAggregate(deps, id);
  const zone = zoneOfMetadata(aggregate.metadata);
  if (zone !== null && aggregate.hosts.includes(name) && !(await zonesOfHost(deps, name, id)).has(zone))
    await refuseMove(deps, name, { from: zone, to: null });
  const outcome = await deps.stores.aggregates.removeHost(id, name);
  if (outcome.kind === "unknown") throw aggregateNotFound(id);
  if (outcome.kind === "host-absent") throw notFound(`Cannot remove host ${name.slice(0, 255)} in aggregate ${id}`);
  await deps.syncer.syncSoon([name]);
  return outcome.aggregate;
}

/** Returns the zones of the host's other aggregates. */
async function zonesOfHost({ stores }: OperatorDeps, host: string, exceptId: number): Promise<ReadonlySet<string>> {
  const zones = (await stores.aggregates.aggregates())
    .filter((aggregate) => aggregate.id !== exceptId && aggregate.hosts.includes(host))
    .map((aggregate) => zoneOfMetadata(aggregate.metadata));
  return new Set(zones.filter((zone) => zone !== null));
}

/** Refuses to change the zone of a host that has servers. */
async function refuseMove(
  { cells }: OperatorDeps,
  host: string,
  zones: { readonly from: string | null; readonly to: string | null },
): Promise<void> {
  const servers = await countServers(cells, [host]);
  if (servers === 0) return;
  throw conflict(
    `The availability zone of host ${host} would change from '${zones.from}' to '${zones.to}', but it has ${servers} server(s): move them away first.`,
  );
}

/** Refuses to change the zone of an aggregate whose hosts have servers. As upstream, a zone cannot be removed. */
async function refuseZoneOfServers(
  { cells }: OperatorDeps,
  aggregate: AggregateRecord,
  zone: string | null | undefined,
): Promise<void> {
  if (zone === undefined) return;
  if (zone === null || zone === "")
    throw badRequest(`Aggregate ${aggregate.name} does not support an availability zone without a name.`);
  if (zone.includes(":")) throw badRequest("The name of an availability zone must not contain a colon.");
  if (zone === zoneOfMetadata(aggregate.metadata)) return;
  if ((await countServers(cells, aggregate.hosts)) > 0)
    throw badRequest(`One or more hosts of aggregate ${aggregate.name} have servers, whose zone would change.`);
}

function nameTaken(name: string): Fault {
  return conflict(`Aggregate ${name.trim()} already exists.`);
}

function describeConflict({ host, zone }: ZoneConflict): string {
  return `Host ${host} is already in availability zone ${zone}.`;
}
