import { pino } from "pino";
import { Registry } from "prom-client";
import { createGrpcDialer } from "../adapters/grpc/grpc-dialer.ts";
import { createGrpcAgentListener } from "../adapters/grpc/grpc-listener.ts";
import { MemoryBroker } from "../adapters/memory/bus/memory-broker.ts";
import { cellStreams } from "../adapters/nats/streams.ts";
import { PostgresCellStore } from "../adapters/postgres/cell/postgres-cell-store.ts";
import { ensureDatabase, withClient } from "../adapters/postgres/client/databases.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { LedgerFollower } from "../adapters/postgres/follower/ledger-follower.ts";
import { PostgresLedger } from "../adapters/postgres/ledger/postgres-ledger.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import { LedgerView } from "../core/ledger/ledger-view.ts";
import type { RowChange } from "../core/ledger/row-change.ts";
import { systemClock } from "../runtime/clock.ts";
import { FakeDriver } from "../services/compute-agent/fake-driver.ts";
import { type HostConfig, treeOf } from "../services/compute-agent/host-config.ts";
import { createMemoryJournal } from "../services/compute-agent/memory-journal.ts";
import { type ComputeAgent, createComputeAgent } from "../services/compute-agent/service.ts";
import { createConductor } from "../services/conductor/service.ts";
import { CONDUCTOR_DEFAULTS } from "../services/conductor/settings.ts";
import { measuredOf, ROUNDS, report } from "./measure.ts";

const HOSTS = Number(process.env.BERTH_BENCH_HOSTS ?? 10_000);
const AGENTS = Number(process.env.BERTH_BENCH_AGENTS ?? 50);
const DEVICES_PER_NODE = 8;
const STEADY_MS = 20_000;
const READY_MS_MAX = 30 * 60_000;
const CELL = "bench";
const silent = () => ({ logger: pino({ level: "silent" }), registry: new Registry() });

/** A host of 20 providers: its root, two NUMA nodes, 16 devices and a disk array. */
function hostOf(index: number, vcpus = 32): HostConfig {
  const numa = (node: number) => ({
    name: `numa${node}`,
    inventories: { VCPU: { total: vcpus }, MEMORY_MB: { total: 131_072 } },
    traits: ["HW_NUMA_ROOT"],
    children: Array.from({ length: DEVICES_PER_NODE }, (_, device) => ({
      name: `0000:${node}${device}:00.0`,
      inventories: { SRIOV_NET_VF: { total: 16 } },
      traits: ["COMPUTE_MANAGED_PCI_DEVICE", "HW_NIC_SRIOV"],
    })),
  });
  const array = { name: "array", inventories: { CUSTOM_DISK_ARRAY: { total: 1 } } };
  const traits = ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE42"];
  return { name: `h${index}`, inventories: { DISK_GB: { total: 1_000 } }, traits, children: [numa(0), numa(1), array] };
}

/**
 * Hosts of 20 providers that register in an empty cell over gRPC, their heartbeats, and a changed inventory on its way to a scheduler's view. One
 * process has a conductor and all agents; the database is a process of its own. `BERTH_BENCH_HOSTS` and `BERTH_BENCH_AGENTS` set the numbers.
 */
export async function run(): Promise<void> {
  const server = await startEmbedded();
  try {
    await ensureDatabase(server.url("postgres"), "bench_agents");
    const url = server.url("bench_agents");
    await migrate(url, "cell");
    const cell = await openCell(url);
    try {
      await measureCell(url, cell);
    } finally {
      await cell.close();
    }
  } finally {
    await server.stop();
  }
}

async function openCell(url: string) {
  const pool = createPool({ url, applicationName: "bench", connectionsMax: 10 });
  const broker = new MemoryBroker(systemClock);
  const bus = broker.connect();
  await bus.ensureStreams(cellStreams(CELL));
  const listener = await createGrpcAgentListener({ listen: "127.0.0.1:0", tls: null, plainText: false });
  const conductor = createConductor(
    {
      ...{ store: new PostgresCellStore(pool), ledger: new PostgresLedger(pool), bus, listener },
      ...{ clock: systemClock, tracing: noTracing, ...silent() },
    },
    { ...CONDUCTOR_DEFAULTS, cell: CELL, conductorId: crypto.randomUUID(), name: "bench" },
  );
  await conductor.start();
  const agents: ComputeAgent[] = [];
  return {
    agents,
    startAgent: async (id: string, hosts: readonly HostConfig[], look: () => readonly HostConfig[]) => {
      const driver = new FakeDriver({
        ...{ clock: systemClock, seed: 1, scripts: new Map(), byMetadata: false },
        ...{ crash: () => {}, loseConnections: () => {} },
      });
      const source = { isLive: false, look: () => ({ hosts: look(), warnings: [] }) };
      const agent = createComputeAgent(
        {
          ...{ dialer: createGrpcDialer({ tls: null }), journal: createMemoryJournal({ records: [] }), driver },
          ...{ clock: systemClock, tracing: noTracing, ...silent() },
          fail: (error) => {
            throw error;
          },
        },
        { agentId: id, conductors: [listener.address], hosts, buildLimit: 10, watch: { source, everyMs: 60_000 } },
      );
      agents.push(agent);
      await agent.start();
      return agent;
    },
    close: async () => {
      await Promise.all(agents.map((agent) => agent.close()));
      await conductor.close();
      await bus.close();
      broker.close();
      await pool.end();
    },
  };
}

async function measureCell(url: string, cell: Awaited<ReturnType<typeof openCell>>): Promise<void> {
  const share = Math.ceil(HOSTS / AGENTS);
  let vcpus = 32;
  const groups = Array.from({ length: AGENTS }, (_, agent) =>
    Array.from({ length: Math.max(0, Math.min(share, HOSTS - agent * share)) }, (_, index) => agent * share + index),
  );
  const started = performance.now();
  for (const [index, group] of groups.entries())
    await cell.startAgent(
      `a${index}`,
      group.map((host) => hostOf(host)),
      () => group.map((host) => hostOf(host, host === 0 ? vcpus : 32)),
    );
  await until(() => cell.agents.every((agent) => agent.ready));
  report(
    `${HOSTS} hosts of 20 providers registered from cold`,
    measuredOf([(performance.now() - started) / 1_000]),
    "s",
  );
  await measureHeartbeats(url);
  const view = new LedgerView();
  const seen = new Set<number>();
  const follower = followerOf(url, view, (row) => {
    if (row.kind === "inventory-put" && row.resourceClass === "VCPU") seen.add(row.inventory.total);
  });
  try {
    await follower.waitUntilSeen(READY_MS_MAX);
    const figures: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      vcpus = 33 + round;
      const changed = performance.now();
      cell.agents[0]!.lookAtHosts();
      await until(() => seen.has(vcpus));
      figures.push(performance.now() - changed);
    }
    report(`a changed inventory in a scheduler's view (its agent has ${share} hosts)`, measuredOf(figures), "ms");
  } finally {
    await follower.close();
  }
}

/** Follows the cell's ledger as schedulers do. `onRow` is called after each change is in the view. */
function followerOf(databaseUrl: string, view: LedgerView, onRow: (row: RowChange) => void): LedgerFollower {
  const watched = {
    applyAll: (rows: Iterable<RowChange>) => view.applyAll(rows, onRow),
    beginLoad: () => view.beginLoad(),
  };
  const events = { loaded: () => {}, lost: () => {} };
  const follower = new LedgerFollower({ cell: CELL, databaseUrl, view: watched, clock: systemClock, events });
  follower.start();
  return follower;
}

/**
 * A write is a transaction that changes something: it costs the database one flush to its disk, however many rows it has. Only such transactions get
 * an id, so the next id counts them. Nothing else uses this database server.
 */
async function measureHeartbeats(url: string): Promise<void> {
  const written = () =>
    withClient(url, async (client) => {
      const { rows } = await client.query<Record<"rows" | "transactions" | "bytes", string>>(
        `select pg_snapshot_xmax(pg_current_snapshot())::text as transactions, (pg_current_wal_insert_lsn() - '0/0')::text as bytes,
          (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables where relname in ('agents', 'hosts'))::text as rows`,
      );
      const [{ rows: changed, transactions, bytes } = { rows: "", transactions: "", bytes: "" }] = rows;
      return { rows: Number(changed), transactions: Number(transactions), kib: Number(bytes) / 1_024 };
    });
  const [before, cpu, started] = [await written(), process.cpuUsage(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, STEADY_MS));
  const seconds = (performance.now() - started) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  report(
    `CPU of a steady conductor with ${AGENTS} agents, agents included`,
    measuredOf([(user + system) / 1e4 / seconds]),
    "%",
  );
  const after = await written();
  const rate = (of: keyof typeof before) => measuredOf([(after[of] - before[of]) / seconds]);
  report("transactions that write something meanwhile", rate("transactions"), "/s");
  report("rows that they write", rate("rows"), "/s");
  report("write-ahead log that they need", rate("kib"), "KiB/s");
}

async function until(condition: () => boolean): Promise<void> {
  for (const endMs = performance.now() + READY_MS_MAX; !condition(); ) {
    if (performance.now() > endMs) throw new Error("the hosts did not register in time");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Checks the figure in the name. */
if (treeOf(hostOf(0)).providers.length !== 20) throw new Error("a host of this benchmark has 20 providers");
