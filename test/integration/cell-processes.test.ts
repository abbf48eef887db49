import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus, type NatsBus } from "../../adapters/nats/nats-bus.ts";
import { cellStreams, cellTasksSubject } from "../../adapters/nats/streams.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid, providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { Task } from "../../proto/gen/berth/cell.ts";
import { readSettings } from "../../runtime/settings.ts";
import { generateHosts, treeOf } from "../../services/compute-agent/host-config.ts";
import { openAgent } from "../../services/compute-agent/open-agent.ts";
import { agentDeclaration } from "../../services/compute-agent/settings.ts";
import { openConductor } from "../../services/conductor/open-conductor.ts";
import { conductorDeclaration } from "../../services/conductor/settings.ts";
import { owner, serverSpec } from "../contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";

const CELL = "cell-1";
const HOSTS = generateHosts("agent-1", 4).map((host) => treeOf(host));

/** The services as their mains construct them, in this process, on a real Postgres, a real NATS, and gRPC. */
describe("a cell with a real database, bus and network", () => {
  let database: TestDatabase;
  let nats: LocalNats;
  let bus: NatsBus;
  let pool: ReturnType<typeof createPool>;
  let store: PostgresCellStore;
  const dataDirs: string[] = [];

  beforeAll(async () => {
    [database, nats] = await Promise.all([
      freshDatabase("cell"),
      startLocalNats({ cells: [CELL], writeConfig: natsConfig }),
    ]);
    bus = createNatsBus({ url: nats.cellApiUrl(CELL), name: "test" });
    await bus.ensureStreams(cellStreams(CELL));
    pool = createPool({ url: database.url, applicationName: "test" });
    store = new PostgresCellStore(pool);
  });
  afterAll(async () => {
    await bus.close();
    await pool.end();
    const journals = dataDirs.map((dataDir) => rm(dataDir, { recursive: true, force: true }));
    await Promise.all([database.drop(), nats.stop(), ...journals]);
  });

  const context = { logger: pino({ level: "silent" }), fail: (error: unknown) => expect.unreachable(String(error)) };

  async function startConductor() {
    const argv = [
      `--cell=${CELL}`,
      `--cell-database-url=${database.url}`,
      `--nats-url=${nats.conductorUrl(CELL)}`,
      "--listen=127.0.0.1:0",
    ];
    const read = readSettings(conductorDeclaration, { argv, env: {} });
    if (read.kind !== "settings") throw new Error("no settings");
    const conductor = await openConductor({ settings: read.settings, ...context }, null);
    await conductor.start();
    return { conductor, address: /agents at (\S+),/.exec(conductor.note)?.[1] ?? "" };
  }

  async function startAgent(conductors: readonly string[]) {
    const dataDir = await mkdtemp(join(tmpdir(), "berth-agent-"));
    dataDirs.push(dataDir);
    const given = [`--conductors=${conductors.join(",")}`, `--data-dir=${dataDir}`];
    const argv = ["--agent-id=agent-1", ...given, "--hosts=4", "--fake-by-metadata"];
    const read = readSettings(agentDeclaration, { argv, env: {} });
    if (read.kind !== "settings") throw new Error("no settings");
    const agent = await openAgent({ settings: read.settings, ...context }, { otlpEndpoint: null, crash: () => {} });
    await agent.start();
    return agent;
  }

  async function boot(metadata: Record<string, string>, hosts: readonly number[]): Promise<string> {
    const uuid = randomUUID();
    const selections = hosts.map((host) => {
      const { host: name, rootProvider } = HOSTS[host]!;
      const items = [{ provider: rootProvider, resourceClass: "VCPU", amount: 1 }];
      return { host: name, rootProvider, availabilityZone: "", allocation: { items, mappings: {} } };
    });
    const server = { ...serverSpec(1), uuid, metadata };
    const task: Task = { id: randomUUID(), server, work: { $case: "build", value: { selections, attemptsMax: 0 } } };
    const item = {
      provider: providerUuid(HOSTS[hosts[0]!]!.rootProvider),
      resourceClass: resourceClass("VCPU"),
      amount: 1,
    };
    const [outcome] = await store.dispatch([{ task, change: claim(consumerUuid(uuid), owner, [item]) }]);
    expect(outcome?.kind).toBe("dispatched");
    await bus.publish(cellTasksSubject(CELL), Task.encode(task).finish(), { id: task.id });
    return uuid;
  }

  const settled = (uuids: readonly string[]) =>
    eventually("all servers to end", async () => {
      const servers = await store.servers(uuids);
      return servers.every((server) => server.status !== "BUILD") ? servers : null;
    });

  test("builds on the chosen host or an alternate, deletes, and continues with one conductor", async () => {
    const [first, second] = [await startConductor(), await startConductor()];
    const agent = await startAgent([first.address, second.address]);
    try {
      await eventually("the hosts to be up", async () => (await store.hosts()).filter((host) => host.up).length === 4);
      const failing = JSON.stringify({ outcome: "reschedule", first: 1, reason: "disk full" });
      const uuids = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          boot(index % 2 === 0 ? {} : { "berth:fake": failing }, [index % 4, (index + 1) % 4]),
        ),
      );
      const servers = await settled(uuids);
      expect(servers.map((server) => server.status)).toEqual(uuids.map(() => "ACTIVE"));
      expect(servers.map((server) => server.attemptId?.at(-1))).toEqual(uuids.map((_, index) => `${index % 2}`));

      await first.conductor.close();
      const late = await settled([await boot({}, [0])]);
      expect(late).toMatchObject([{ status: "ACTIVE", host: "agent-1-1" }]);

      const ledger = new PostgresLedger(pool);
      const deletes = uuids.map(
        (uuid): Task => ({
          id: randomUUID(),
          server: { ...serverSpec(1), uuid },
          work: { $case: "delete", value: {} },
        }),
      );
      for (const outcome of await store.requestDelete(deletes)) {
        if (outcome.kind === "queued") await bus.publish(cellTasksSubject(CELL), Task.encode(outcome.task).finish());
      }
      await eventually("the deletes", async () =>
        (await store.servers(uuids)).every((server) => server.status === "DELETED"),
      );
      expect((await ledger.dump()).consumers).toHaveLength(1);
    } finally {
      await agent.close();
      await Promise.all([first.conductor.close(), second.conductor.close()]);
    }
  });
});
