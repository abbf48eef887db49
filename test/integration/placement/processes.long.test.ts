import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "../../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../../adapters/postgres/ledger/postgres-ledger.ts";
import { ServiceProcess } from "../../../chaos/local/service-process.ts";
import { freePort } from "../../../runtime/free-port.ts";
import { allocationsBody, PlacementClient } from "../../placement/placement-client.ts";
import { freshDatabase, type TestDatabase } from "../../rigs/databases.ts";
import { eventually } from "../../rigs/eventually.ts";
import { brokenSums } from "../../rigs/ledger-laws.ts";

interface Candidates {
  readonly allocation_requests: readonly unknown[];
  readonly provider_summaries: Readonly<
    Record<string, { readonly resources: Readonly<Record<string, { used: number }>> }>
  >;
}

/** Processes of `berth api --only placement` on one database. */
describe("processes of the Placement API", () => {
  let database: TestDatabase;
  const running: ServiceProcess[] = [];
  const clients: PlacementClient[] = [];
  beforeAll(async () => {
    database = await freshDatabase("cell");
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await Promise.all(running.map((one) => one.kill()));
    await database.drop();
  });

  const placementProcess = (name: string, more: readonly string[] = []): ServiceProcess => {
    const argv = ["api", "--only", "placement", "--listen", "127.0.0.1:0", "--auth", "noauth2", ...more];
    const started = new ServiceProcess({ name, argv, env: () => ({ BERTH_CELL_DATABASE_URL: database.url }) });
    running.push(started);
    return started;
  };
  async function clientOf(started: ServiceProcess): Promise<PlacementClient> {
    const client = new PlacementClient(await started.start());
    clients.push(client);
    return client;
  }

  test("one process shows each write that the other one acknowledged, 200 times", async () => {
    const [a, b] = await Promise.all([clientOf(placementProcess("a")), clientOf(placementProcess("b"))]);
    const host = randomUUID();
    await a.makeProvider(host, { inventories: { VCPU: 4 } });
    const search = (client: PlacementClient) =>
      client.must<Candidates>("GET", `/allocation_candidates?resources=VCPU:1&in_tree=${host}`);
    for (let round = 0; round < 200; round += 1) {
      const [writer, reader] = round % 2 === 0 ? [a, b] : [b, a];
      const consumer = randomUUID();
      await writer.must("PUT", `/allocations/${consumer}`, { body: allocationsBody({ [host]: { VCPU: 4 } }, null) });
      const [full, shown] = await Promise.all([
        search(reader),
        reader.must<{ allocations: object }>("GET", `/allocations/${consumer}`),
      ]);
      expect(full.allocation_requests).toEqual([]);
      expect(Object.keys(shown.allocations)).toEqual([host]);
      await reader.must("DELETE", `/allocations/${consumer}`);
      const free = await search(writer);
      expect(free.provider_summaries[host]?.resources["VCPU"]?.used).toBe(0);
    }
    await Promise.all(running.splice(0).map(async (one) => expect(await one.stop()).toBe("exit code 0")));
  });

  test("show their metrics on a separate address, and not to clients", async () => {
    const port = await freePort();
    const started = placementProcess("c", ["--metrics-listen", `127.0.0.1:${port}`]);
    const url = await started.start();
    const metrics = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect(await metrics.text()).toContain('process_cpu_seconds_total{service="placement"}');
    const asked = await fetch(`${url}/metrics`);
    expect([asked.status, (await asked.text()).includes("process_cpu")]).toEqual([401, false]);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(await started.stop()).toBe("exit code 0");
  });

  test("show a name through one as soon as it was created through the other, and no longer once it is deleted", async () => {
    const [a, b] = await Promise.all([clientOf(placementProcess("a")), clientOf(placementProcess("b"))]);
    const search = "/allocation_candidates?resources=CUSTOM_GOLD:1&required=CUSTOM_SHINY";
    for (let round = 0; round < 20; round += 1) {
      expect((await b.call("GET", search)).status).toBe(400);
      await a.must("PUT", "/resource_classes/CUSTOM_GOLD");
      await a.must("PUT", "/traits/CUSTOM_SHINY");
      expect((await b.call("GET", search)).status).toBe(200);
      await a.must("DELETE", "/resource_classes/CUSTOM_GOLD");
      expect((await b.call("GET", search)).text).toContain("CUSTOM_GOLD");
      await a.must("DELETE", "/traits/CUSTOM_SHINY");
    }
    await Promise.all(running.splice(0).map((one) => one.stop()));
  });

  test("keep every acknowledged write, and none partially, through kill -9 under load", async () => {
    const server = placementProcess("killed");
    let client = await clientOf(server);
    const hosts = Array.from({ length: 4 }, () => randomUUID());
    for (const uuid of hosts) await client.makeProvider(uuid, { inventories: { VCPU: 100_000, MEMORY_MB: 100_000 } });
    const acknowledged = new Set<string>();
    const asked = new Set<string>();
    for (let round = 0; round < 3; round += 1) {
      let killed = false;
      const claimUntilKilled = async (): Promise<void> => {
        while (!killed) {
          const consumer = randomUUID();
          const [one, two] = [hosts[asked.size % 4]!, hosts[(asked.size + 1) % 4]!];
          asked.add(consumer);
          const body = allocationsBody({ [one]: { VCPU: 1, MEMORY_MB: 2 }, [two]: { VCPU: 3 } }, null);
          const answer = await client.call("PUT", `/allocations/${consumer}`, { body }).catch(() => null);
          if (answer === null) return;
          expect(answer.status, answer.text).toBe(204);
          acknowledged.add(consumer);
        }
      };
      const before = acknowledged.size;
      const load = Promise.all(Array.from({ length: 32 }, claimUntilKilled));
      await eventually("claims under way", () => acknowledged.size > before + 300);
      await server.kill();
      killed = true;
      await load;
      client = await clientOf(server);
    }
    const pool = createPool({ url: database.url, applicationName: "placement test" });
    try {
      const dump = await new PostgresLedger(pool).dump();
      const there = new Map(dump.consumers.map((consumer) => [consumer.uuid as string, consumer]));
      expect([...acknowledged].filter((uuid) => !there.has(uuid))).toEqual([]);
      expect([...there.keys()].filter((uuid) => !asked.has(uuid))).toEqual([]);
      for (const { items } of there.values()) expect(items.map(({ amount }) => amount).sort()).toEqual([1, 2, 3]);
      expect(brokenSums(dump)).toEqual([]);
      // The view of the restarted process agrees, too.
      const summaries = await client.must<Candidates>("GET", "/allocation_candidates?resources=VCPU:1");
      for (const { uuid, inventories } of dump.providers) {
        for (const [name, { used }] of inventories)
          if (hosts.some((host) => host === uuid))
            expect(summaries.provider_summaries[uuid]?.resources[name]?.used).toBe(used);
      }
    } finally {
      await pool.end();
    }
  });
});
