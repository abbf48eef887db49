import type { Pool } from "pg";
import type { HostReport, HostSighting } from "../../../core/cell/cell-store.ts";
import { type HypervisorFacts, hypervisorOf } from "../../../core/cell/hypervisor-facts.ts";
import type { Host } from "../../../core/cell/server.ts";
import { textArrayLiteral } from "../literals.ts";
import { queryStored } from "../store-query.ts";

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
  const rows = await queryStored<{ name: string; up: boolean; seen_ago_ms: number }>(pool, {
    name: "host_sightings",
    text: `select h.name, h.up, extract(epoch from clock_timestamp() - a.seen_at)::float8 * 1000 as seen_ago_ms
      from hosts h join agents a on a.id = h.agent_id
      where h.name = any ($1) order by h.name collate "C"`,
    values: [textArrayLiteral(hosts)],
  });
  return rows.map((row) => ({ name: row.name, up: row.up, seenAgoMs: row.seen_ago_ms }));
}

/** Lock order: the agent, then hosts by name. A host that is as it should be is not written: views follow this table. */
export async function writeHostsUp(pool: Pool, agentId: string, hosts: readonly HostReport[]): Promise<void> {
  const lastOfEach = [...new Map(hosts.map((host) => [host.name, host])).values()];
  await queryStored(pool, {
    name: "hosts_up",
    text: `with agent as (
        insert into agents (id, seen_at) values ($1, now()) on conflict (id) do update set seen_at = now()
      )
      insert into hosts (name, root_provider, agent_id, up, hypervisor)
      select w.name, w.root_provider, $1, true,
        coalesce(w.hypervisor, (select h.hypervisor from hosts h where h.name = w.name), '{}')
      from unnest($2::text[], $3::uuid[], $4::jsonb[]) as w (name, root_provider, hypervisor) order by w.name collate "C"
      on conflict (name) do update
      set root_provider = excluded.root_provider, agent_id = excluded.agent_id, up = not hosts.forced_down,
        hypervisor = excluded.hypervisor, updated_at = now()
      where (not hosts.up and not hosts.forced_down) or hosts.root_provider <> excluded.root_provider
        or hosts.agent_id <> excluded.agent_id or hosts.hypervisor <> excluded.hypervisor`,
    values: [
      agentId,
      textArrayLiteral(lastOfEach.map((host) => host.name)),
      textArrayLiteral(lastOfEach.map((host) => host.rootProvider)),
      lastOfEach.map(({ hypervisor }) => (hypervisor === undefined ? null : JSON.stringify(hypervisor))),
    ],
  });
}

/** Waits for evacuations that are deciding whether the agent is gone. */
export async function agentArrived(pool: Pool, agentId: string): Promise<void> {
  await queryStored(pool, {
    name: "agent_arrived",
    text: "update agents set seen_at = clock_timestamp() where id = $1",
    values: [agentId],
  });
}

/** Skips agents that another conductor touches at this moment: each agent is seen by all conductors of its cell. */
export async function touchAgents(pool: Pool, agentIds: readonly string[]): Promise<readonly string[]> {
  const rows = await queryStored<{ agent_id: string }>(pool, {
    name: "agents_seen",
    text: `with seen as (
        select id from agents where id = any ($1) order by id for no key update skip locked
      ), touched as (
        update agents a set seen_at = now() from seen where a.id = seen.id
      )
      select distinct agent_id collate "C" as agent_id from hosts
      where agent_id = any ($1) and not up and not forced_down order by 1`,
    values: [textArrayLiteral(agentIds)],
  });
  return rows.map((row) => row.agent_id);
}

export async function expireAgents(pool: Pool, unseenMs: number): Promise<readonly string[]> {
  const rows = await queryStored<{ name: string }>(pool, {
    name: "expire_agents",
    text: `with expired as (
        select h.name from agents a join hosts h on h.agent_id = a.id and h.up
        where a.seen_at <= now() - $1::float8 * interval '1 ms'
        order by h.name collate "C" for no key update of h
      )
      update hosts h set up = false, updated_at = now() from expired where h.name = expired.name returning h.name`,
    values: [unseenMs],
  });
  return rows.map((row) => row.name).sort();
}
