import type { ProviderUuid } from "../ledger/ids.ts";
import { type AllocationItem, CONSUMER_TYPE_INSTANCE } from "../ledger/model.ts";
import type { AuditedServer, CellFacts } from "./facts.ts";
import type { Violation } from "./violation.ts";

/** Law 2: what a server holds lies on its home host, and only a server that lives holds anything. */
export function checkOrphans(facts: CellFacts): Violation[] {
  const violations: Violation[] = [];
  const servers = new Map(facts.servers.map((server) => [server.uuid, server]));
  const rootOf = new Map(facts.ledger.providers.map((provider) => [provider.uuid, provider.root]));
  const holders = new Set<string>();
  for (const consumer of facts.ledger.consumers) {
    holders.add(consumer.uuid);
    if (consumer.type !== CONSUMER_TYPE_INSTANCE) continue;
    const server = servers.get(consumer.uuid);
    const wrong =
      server === undefined ? `there is no such server` : whyOrphan(server, consumer.items, rootOf, facts.hosts);
    if (wrong === null) continue;
    violations.push({
      law: 2,
      what: "an allocation belongs to no server that lives there",
      where: `cell ${facts.cell}, consumer ${consumer.uuid}`,
      proof: `${wrong}; it holds ${describeItems(consumer.items)}`,
    });
  }
  for (const server of facts.servers) {
    if (server.host === null || server.status === "DELETED" || holders.has(server.uuid)) continue;
    violations.push({
      law: 2,
      what: "a server has a home and holds nothing there",
      where: `cell ${facts.cell}, server ${server.uuid}`,
      proof: `${server.status} on ${server.host}, no allocations`,
    });
  }
  return violations;
}

function whyOrphan(
  server: AuditedServer,
  items: readonly AllocationItem[],
  rootOf: ReadonlyMap<ProviderUuid, ProviderUuid>,
  hosts: ReadonlyMap<string, ProviderUuid>,
): string | null {
  if (server.status === "DELETED") return "its server is DELETED";
  if (server.host === null) return `its server is ${server.status} and has no host`;
  const root = hosts.get(server.host);
  if (root === undefined) return `its server's host ${server.host} is unknown`;
  const elsewhere = items.find((item) => rootOf.get(item.provider) !== root);
  return elsewhere === undefined
    ? null
    : `its server is on ${server.host}, provider ${elsewhere.provider} is not of that host`;
}

function describeItems(items: readonly AllocationItem[]): string {
  return items.map((item) => `${item.amount} ${item.resourceClass} of ${item.provider}`).join(", ");
}
