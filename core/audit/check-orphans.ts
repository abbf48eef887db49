import type { ProviderUuid } from "../ledger/ids.ts";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION, type Provider } from "../ledger/model.ts";
import type { AuditedConsumer, AuditedMove, AuditedServer, CellReading } from "./facts.ts";
import type { Violation } from "./violation.ts";

/**
 * Law 2: a server's allocations are on its home host or, during a move, also on the destination. A migration's allocations are on the
 * source. Only live servers and unsettled moves hold anything.
 */
export function checkOrphans(facts: CellReading): Violation[] {
  const violations: Violation[] = [];
  const servers = new Map(facts.servers.map((server) => [server.uuid, server]));
  const moves = new Map(facts.moves.map((move) => [move.uuid, move]));
  const moveOf = new Map(facts.moves.filter((move) => move.inFlight).map((move) => [move.serverUuid, move]));
  const rootOf = rootsOf(facts.ledger.providers);
  const holders = new Set<string>();
  for (const consumer of facts.ledger.consumers) {
    holders.add(consumer.uuid);
    const isMigration = consumer.type === CONSUMER_TYPE_MIGRATION;
    if (consumer.type !== CONSUMER_TYPE_INSTANCE && !isMigration) continue;
    const places = isMigration
      ? placesOfMigration(moves.get(consumer.uuid))
      : placesOfServer(servers.get(consumer.uuid), moveOf.get(consumer.uuid));
    const wrong = typeof places === "string" ? places : whyElsewhere(places, consumer.items, rootOf, facts.hosts);
    if (wrong === null) continue;
    violations.push({
      law: 2,
      what: isMigration ? "an allocation belongs to no move" : "an allocation belongs to no server that lives there",
      where: `cell ${facts.cell}, consumer ${consumer.uuid}`,
      proof: `${wrong}; it holds ${describeItems(consumer.items)}`,
      subject: { kind: "consumer", cell: facts.cell, uuid: consumer.uuid },
    });
  }
  for (const server of facts.servers) {
    if (server.host === null || server.status === "DELETED" || holders.has(server.uuid)) continue;
    violations.push({
      law: 2,
      what: "a server has a home but no allocations there",
      where: `cell ${facts.cell}, server ${server.uuid}`,
      proof: `${server.status} on ${server.host}, no allocations`,
    });
  }
  return violations;
}

/** The slices of one reading share their providers, of which there are as many as in a whole slice or more. */
const rootsByProviders = new WeakMap<readonly Provider[], ReadonlyMap<ProviderUuid, ProviderUuid>>();

function rootsOf(providers: readonly Provider[]): ReadonlyMap<ProviderUuid, ProviderUuid> {
  const known = rootsByProviders.get(providers);
  if (known !== undefined) return known;
  const roots = new Map(providers.map((provider) => [provider.uuid, provider.root]));
  rootsByProviders.set(providers, roots);
  return roots;
}

/** The hosts where the server may hold something, or the reason why it may hold nothing. */
function placesOfServer(server: AuditedServer | undefined, move: AuditedMove | undefined): readonly string[] | string {
  if (server === undefined) return "there is no such server";
  if (server.status === "DELETED") return "its server is DELETED";
  if (server.host === null) return `its server is ${server.status} and has no host`;
  return move === undefined ? [server.host] : [server.host, move.destHost];
}

function placesOfMigration(move: AuditedMove | undefined): readonly string[] | string {
  if (move === undefined) return "there is no such move, or it has ended";
  return move.sourceHost === null ? "its move has no source" : [move.sourceHost];
}

function whyElsewhere(
  places: readonly string[],
  items: AuditedConsumer["items"],
  rootOf: ReadonlyMap<ProviderUuid, ProviderUuid>,
  hosts: ReadonlyMap<string, ProviderUuid>,
): string | null {
  for (const host of places) if (!hosts.has(host)) return `its server's host ${host} is unknown`;
  for (const { provider } of items) {
    const root = rootOf.get(provider);
    if (!places.some((host) => hosts.get(host) === root))
      return `its server is on ${places.join(" or ")}, provider ${provider} does not belong to that host`;
  }
  return null;
}

function describeItems(items: AuditedConsumer["items"]): string {
  if (items.length === 0) return "nothing";
  return items
    .map(({ amount, resourceClass, provider }) =>
      amount === undefined ? `resources of ${provider}` : `${amount} ${resourceClass} of ${provider}`,
    )
    .join(", ");
}
