import type { Pool } from "pg";
import { type HypervisorFacts, hypervisorOf } from "../../../core/ledger/hypervisor-facts.ts";
import type { AgentsSeen, HostReport, HostSighting, KnownRoot } from "../../../core/stores/cell/cell-store.ts";
import { beginningsOf } from "../../../core/tasks/beginnings-of.ts";
import type { Expiry, ExpiryLimit } from "../../../core/tasks/expiry-limit.ts";
import type { Host } from "../../../core/tasks/server.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { runStored } from "../client/run-stored.ts";
import { queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";

interface HostRow {
  readonly name: string;
  readonly root_provider: string;
  readonly agent_id: string;
  readonly up: boolean;
  readonly disabled: boolean;
  readonly hypervisor: Partial<HypervisorFacts>;
}

export async function readHosts(pool: Pool): Promise<readonly Host[]> {
  const rows = await queryStored<HostRow>(pool, {
    name: "hosts",
    text: `select name, root_provider, agent_id, up, disabled, hypervisor from hosts order by name collate "C"`,
    values: [],
  });
  return rows.map((row) => ({
    name: row.name,
    rootProvider: row.root_provider,
    agentId: row.agent_id,
    up: row.up,
    disabled: row.disabled,
    hypervisor: hypervisorOf(row.hypervisor),
  }));
}

export async function readSightings(pool: Pool, hosts: readonly string[]): Promise<readonly HostSighting[]> {
  interface SightingRow {
    readonly name: string;
    readonly agent_id: string;
    readonly up: boolean;
    readonly forced_down: boolean;
    readonly seen_ago_ms: number;
  }
  const rows = await queryStored<SightingRow>(pool, {
    name: "host_sightings",
    text: `select h.name, h.agent_id, h.up, h.forced_down,
        extract(epoch from clock_timestamp() - a.seen_at)::float8 * 1000 as seen_ago_ms
      from hosts h join agents a on a.id = h.agent_id
      where h.name = any ($1) order by h.name collate "C"`,
    values: [textArrayLiteral(hosts)],
  });
  return rows.map((row) => ({
    ...{ name: row.name, agentId: row.agent_id, up: row.up },
    ...{ forcedDown: row.forced_down, seenAgoMs: row.seen_ago_ms },
  }));
}

export async function readKnownRoots(pool: Pool, providers: readonly string[]): Promise<readonly KnownRoot[]> {
  const rows = await queryStored<{ provider: string; name: string | null; hosts: readonly string[] }>(pool, {
    name: "known_roots",
    text: `select w.uuid as provider, p.name,
        coalesce(array_agg(h.name order by h.name collate "C") filter (where h.name is not null), '{}') as hosts
      from unnest($1::uuid[]) as w (uuid)
      left join resource_providers p on p.uuid = w.uuid left join hosts h on h.root_provider = w.uuid
      group by w.uuid, p.name`,
    values: [textArrayLiteral([...new Set(providers)])],
  });
  const known = new Map(rows.map(({ provider, name, hosts }) => [provider, { name, hosts }]));
  return providers.map((provider) => known.get(provider) ?? { name: null, hosts: [] });
}

/** Two searches in indexes for each host: the names that it continues, and the names that continue it. */
export async function readHostsNamedAlike(
  pool: Pool,
  hosts: readonly Pick<Host, "name" | "agentId">[],
): Promise<readonly (string | null)[]> {
  const rows = await queryStored<{ readonly at: number; readonly name: string | null }>(pool, {
    name: "hosts_named_alike",
    text: `select w.at::int as at, coalesce(
        (select h.name from unnest(string_to_array(w.beginnings, chr(1))) as b (name) join hosts h on h.name = b.name
          where h.agent_id <> w.agent_id order by length(h.name) limit 1),
        (select h.name from hosts h
          where h.name collate "C" > w.name || '_' and h.name collate "C" < w.name || '\`' and h.agent_id <> w.agent_id
          order by h.name collate "C" limit 1)) as name
      from unnest($1::text[], $2::text[], $3::text[]) with ordinality as w (name, agent_id, beginnings, at)
      where not exists (select from hosts e where e.name = w.name)`,
    values: [
      textArrayLiteral(hosts.map(({ name }) => name)),
      textArrayLiteral(hosts.map(({ agentId }) => agentId)),
      // Names of hosts have no control characters.
      textArrayLiteral(hosts.map(({ name }) => beginningsOf(name).join("\u0001"))),
    ],
  });
  const found = new Map(rows.map(({ at, name }) => [at - 1, name]));
  return hosts.map((_, at) => found.get(at) ?? null);
}

/**
 * Lock order: the agent, then hosts by name, then the root providers of new hosts. A removal of a host locks in the same order. It ends either before
 * the host is looked up, whose root provider is gone then, or after the host is up. An unchanged host is not written, because views follow this
 * table.
 */
export async function writeHostsUp(
  pool: Pool,
  agentId: string,
  hosts: readonly HostReport[],
): Promise<readonly string[]> {
  const lastOfEach = [...new Map(hosts.map((host) => [host.name, host])).values()];
  const rootless = await queryStored<{ readonly name: string }>(pool, {
    name: "hosts_up",
    text: `with agent as (
        insert into agents (id, seen_at) values ($1, now()) on conflict (id) do update set seen_at = now() returning id
      ), wanted as (
        select * from unnest($2::text[], $3::uuid[], $4::jsonb[]) as w (name, root_provider, hypervisor)
      ), known as (
        select h.name from agent, hosts h where h.name = any ($2::text[]) order by h.name collate "C" for no key update of h
      ), new as (
        select w.name from wanted w join resource_providers p on p.uuid = w.root_provider
        where not exists (select from known k where k.name = w.name) order by p.uuid for key share of p
      ), written as (
        insert into hosts (name, root_provider, agent_id, up, hypervisor)
        select w.name, w.root_provider, $1, true,
          coalesce(w.hypervisor, (select h.hypervisor from hosts h where h.name = w.name), '{}')
        from wanted w where w.name in (select name from known union all select name from new) order by w.name collate "C"
        on conflict (name) do update
        set root_provider = excluded.root_provider, agent_id = excluded.agent_id, up = not hosts.forced_down,
          hypervisor = excluded.hypervisor, updated_at = now()
        where (not hosts.up and not hosts.forced_down) or hosts.root_provider <> excluded.root_provider
          or hosts.agent_id <> excluded.agent_id or hosts.hypervisor <> excluded.hypervisor
      )
      select name from wanted where name not in (select name from known union all select name from new)
      order by name collate "C"`,
    values: [
      agentId,
      textArrayLiteral(lastOfEach.map((host) => host.name)),
      textArrayLiteral(lastOfEach.map((host) => host.rootProvider)),
      lastOfEach.map(({ hypervisor }) => (hypervisor === undefined ? null : JSON.stringify(hypervisor))),
    ],
  });
  return rootless.map(({ name }) => name);
}

/**
 * Waits for evacuations that are deciding whether the agent is gone. A host that another agent carried belongs to this agent from now on,
 * because a check whether the host is seen must find the agent that has arrived. Lock order: the agent, then hosts by name.
 */
export async function agentArrived(pool: Pool, agentId: string, hosts: readonly string[]): Promise<void> {
  await runStored("agent_arrived", () =>
    inTransaction(pool, async (client) => {
      await queryRows(client, {
        name: "agent_arrived",
        text: `insert into agents (id, seen_at) values ($1, clock_timestamp())
          on conflict (id) do update set seen_at = clock_timestamp()`,
        values: [agentId],
      });
      await queryRows(client, {
        name: "hosts_arrived",
        text: `with foreign_hosts as (
            select name from hosts where name = any ($2) and agent_id <> $1 order by name collate "C" for no key update
          )
          update hosts h set agent_id = $1, updated_at = now() from foreign_hosts f where h.name = f.name`,
        values: [agentId, textArrayLiteral(hosts)],
      });
    }),
  );
}

/** Skips agents that another conductor is updating at this moment, since every conductor of the cell sees each agent. */
export async function touchAgents(pool: Pool, agentIds: readonly string[], unseenMs: number): Promise<AgentsSeen> {
  const rows = await queryStored<{ down: readonly string[]; others_unseen: boolean }>(pool, {
    name: "agents_seen",
    text: `with seen as (
        select id from agents where id = any ($1) order by id for no key update skip locked
      ), touched as (
        update agents a set seen_at = now() from seen where a.id = seen.id
      )
      select
        array(
          select distinct agent_id collate "C" from hosts where agent_id = any ($1) and not up and not forced_down order by 1
        ) as down,
        exists (
          select from agents a join hosts h on h.agent_id = a.id and h.up
          where a.seen_at <= now() - $2 * interval '1 ms' and a.id <> all ($1)
        ) as others_unseen`,
    values: [textArrayLiteral(agentIds), unseenMs],
  });
  const [row] = rows;
  return { down: row?.down ?? [], othersUnseen: row?.others_unseen ?? false };
}

/** Cost: one round trip, which examines all hosts of the cell when any is unseen. */
export async function expireAgents(pool: Pool, unseenMs: number, limit: ExpiryLimit): Promise<Expiry> {
  const rows = await queryStored<{ name: string; down: boolean }>(pool, {
    name: "cell_expire_hosts",
    text: "select name, down from cell_expire_hosts($1, $2, $3)",
    values: [unseenMs, limit.shareMax, limit.countMin],
  });
  const namesOf = (isDown: boolean) => rows.flatMap(({ name, down }) => (down === isDown ? [name] : [])).sort();
  return { down: namesOf(true), heldUp: namesOf(false) };
}
