import type { Pool } from "pg";
import type { LocalNats } from "../../adapters/nats/local-server.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import type { LocalAgent } from "../../chaos/local/local-agent.ts";
import type { LocalCell } from "../../chaos/local/local-cell.ts";
import type { LocalConductor } from "../../chaos/local/local-conductor.ts";
import { copiesOf, runningGuests } from "../../chaos/local/running-guests.ts";
import type { RunningGuest } from "../../core/audit/facts.ts";
import { eventually } from "../rigs/eventually.ts";

const PATIENT = { everyMs: 50, withinMs: 90_000, isLasting: true };
/** The processes of a cloud that starts on a busy machine may leave a new connection waiting for longer than the 5 s of a service. */
const CONNECT_MS = 60_000;

/** A cell of separate processes, examined from inside through its own database. */
export class E2eCell {
  readonly name: string;
  /** A trait that all hosts of this cell have, and no hosts of another. */
  readonly trait: string;
  readonly nats: LocalNats;
  readonly database: LocalCell["database"];
  readonly databaseUrl: string;
  readonly pool: Pool;
  readonly store: PostgresCellStore;
  readonly conductors: readonly LocalConductor[];
  readonly agents: readonly LocalAgent[];
  readonly #hostCount: number;

  constructor(cell: LocalCell) {
    this.name = cell.name;
    this.trait = cell.trait;
    this.nats = cell.nats;
    this.database = cell.database;
    this.databaseUrl = cell.databaseUrl;
    const pool = { applicationName: "e2e test", connectionsMax: 4, connectMs: CONNECT_MS };
    this.pool = createPool({ url: this.databaseUrl, ...pool });
    this.store = new PostgresCellStore(this.pool);
    this.conductors = cell.conductors;
    this.agents = cell.agents;
    this.#hostCount = cell.hostCount;
  }

  /** The agent of the host. */
  agentOf(host: string): LocalAgent {
    const agent = this.agents.find(({ hosts }) => hosts.includes(host));
    if (agent === undefined) throw new Error(`no agent of ${host} in ${this.name}`);
    return agent;
  }

  /** Waits until every host is up. Also works where the database is older than this version. */
  async hostsUp(): Promise<void> {
    const up = async () => (await this.query("select from hosts where up")).length === this.#hostCount;
    await eventually(`all hosts of ${this.name} to be up`, up, PATIENT);
  }

  /** Rows of a query. A single column named `value` suffices for most. */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.pool.query<Row>(text, [...values])).rows;
  }

  /** Hosts on which the server holds an allocation. */
  async holders(uuid: string): Promise<readonly string[]> {
    const rows = await this.query<{ name: string }>(
      `select distinct root.name from allocations a
       join resource_providers p on p.id = a.provider_id join resource_providers root on root.id = p.root_id
       where a.consumer_uuid = $1 order by 1`,
      [uuid],
    );
    return rows.map((row) => row.name);
  }

  /** Open tasks (of these servers), with the names of the conductors that own them, and which of their hosts they have come to. */
  openTasks(
    uuids: readonly string[] | null = null,
  ): Promise<readonly { id: string; server: string; owner: string | null; epoch: number; selection: number }[]> {
    return this.query(
      `select t.id, t.server_uuid as server, c.name as owner, t.epoch, t.selection from tasks t left join conductors c on c.id = t.owner
       where t.outcome is null and ($1::uuid[] is null or t.server_uuid = any($1))`,
      [uuids],
    );
  }

  /** How many tasks of this kind (of this server) the cell has ever been given. Tasks that have ended count, too. */
  async tasksGiven(kind: "build" | "operate", server: string | null = null): Promise<number> {
    const [row] = await this.query<{ count: number }>(
      "select count(*)::int as count from tasks where kind = $1 and ($2::uuid is null or server_uuid = $2)",
      [kind, server],
    );
    return row?.count ?? 0;
  }

  /** The number of sessions that wait for a lock. */
  async lockWaiters(): Promise<number> {
    const [row] = await this.query<{ count: number }>(
      "select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock'",
    );
    return row?.count ?? 0;
  }

  /** The running guests on the hosts of the agents that answer. */
  runningGuests(): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
    return runningGuests(this.agents);
  }

  /** All guests on the hosts of the agents that answer, running or not. */
  copies(): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
    return copiesOf(this.agents);
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}
