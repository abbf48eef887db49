import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { changesSince, hostTree, serverId } from "../contract/cell-fixtures.ts";
import { type CellCall, cellCalls, type Drawn, HOSTS, perform, SERVERS } from "../rigs/cell-calls.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyCellTables } from "../rigs/empty-cell.ts";
import fc from "../rigs/property.ts";

const RUNS = Number(process.env.BERTH_TEST_RUNS ?? 20);

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "cell model test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

interface Body {
  readonly store: CellStore;
  readonly ledger: Ledger;
  tasks(): Promise<readonly unknown[]>;
}

test("the cell's two implementations answer any calls alike, and end in the same state", {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(cellCalls, async (calls) => {
      await emptyCellTables(pool);
      const bodies = [memoryBody(), postgresBody()];
      for (const body of bodies) await body.ledger.putTrees(HOSTS.map((host) => hostTree(host, 4)));
      const drawn: Drawn = { tasks: 0, claims: [] };
      for (const call of calls) await performOnBoth(bodies, call, drawn);
      const [memory, postgres] = await Promise.all(bodies.map(dumpOf));
      expect(postgres).toEqual(memory);
    }),
    { numRuns: RUNS },
  );
});

/**
 * Both implementations get the same call, with the claims that the first one returned. The claims of both are equal, because
 * their answers are.
 */
async function performOnBoth(bodies: readonly Body[], call: CellCall, drawn: Drawn): Promise<void> {
  const [memory, postgres] = bodies as readonly [Body, Body];
  const run = perform(call, drawn);
  const expected = withoutTimes(await run(memory.store));
  expect(withoutTimes(await run(postgres.store)), JSON.stringify(call)).toEqual(expected);
}

function memoryBody(): Body {
  let nowMs = 1_000_000;
  const clock = { now: () => ++nowMs, monotonic: () => nowMs, setTimer: () => ({ cancel: () => undefined }) };
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  return {
    store,
    ledger,
    tasks: async () =>
      store.tasks().map(({ id, serverUuid, kind, epoch, owner, selection, outcome }) => ({
        id,
        serverUuid,
        kind,
        epoch,
        owner,
        selection,
        outcome,
      })),
  };
}

function postgresBody(): Body {
  return {
    store: new PostgresCellStore(pool),
    ledger: new PostgresLedger(pool),
    async tasks() {
      const { rows } = await pool.query(
        `select id, server_uuid as "serverUuid", kind, epoch, owner, selection, outcome from tasks order by id`,
      );
      return rows;
    },
  };
}

async function dumpOf({ store, ledger, tasks }: Body): Promise<unknown> {
  const uuids = SERVERS.map(serverId);
  const changed = await store.serversChanged(changesSince(0));
  return withoutTimes({
    ledger: await ledger.dump(),
    servers: await store.servers(uuids),
    changed: changed.kind === "found" && changed.servers.map((server) => server.uuid).sort(),
    homes: await store.homes(uuids),
    attempts: await Promise.all(uuids.map((uuid) => store.attempts(uuid))),
    closed: await store.close(uuids.map((serverUuid) => ({ serverUuid, assignment: 0 }))),
    hosts: await store.hosts(),
    counts: [...(await store.serverCountByHost())].sort(),
    residents: await store.residents(HOSTS.map((host) => `host-${host}`)),
    tasks: await tasks(),
  });
}

/** A copy in which each time only says whether it is set, since the two implementations have their own clocks. */
function withoutTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTimes);
  if (value === null || typeof value !== "object" || value instanceof Map || value instanceof Set) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => {
      if (key === "xid") return [key, "some"];
      return [key, key.endsWith("AtMs") || key === "atMs" ? field === null : withoutTimes(field)];
    }),
  );
}
