import { randomUUID } from "node:crypto";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { ensureDatabase } from "../../adapters/postgres/client/databases.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { startEmbedded } from "../../adapters/postgres/embedded/embedded.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { migrate } from "../../adapters/postgres/schema/migrate.ts";
import { claim } from "../../core/ledger/allocation-change.ts";
import { consumerUuid } from "../../core/ledger/ids.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { CONSUMER_TYPE_INSTANCE } from "../../core/ledger/model.ts";
import type { ProviderTree } from "../../core/ledger/provider-tree.ts";
import { HostChooser } from "../../core/scheduling/host-chooser.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import type { Dispatch, DispatchOutcome } from "../../core/stores/cell/cell-store.ts";
import { Batcher } from "../../runtime/batcher.ts";
import { systemClock } from "../../runtime/clock.ts";
import { ClaimsInFlight } from "../../services/scheduler/cells/claims-in-flight.ts";
import { buildTask, itemsOfSelection } from "../../services/scheduler/placing/plan-build.ts";
import { measure, report } from "../measure.ts";
import { CLASSES, flavorAt, hostName, providerOf, QUERIES, specOf } from "./mixed-cloud.ts";
import { allRules } from "./rules.ts";

const CELLS = 4;
const HOSTS_PER_CELL = 2_500;
const TREES_BATCH = 1_000;
const RUN_MS = 1_500;
const IN_FLIGHT = 1_200;
const BATCH_MAX = 200;
const CLAIM_EXPIRY_MS = 10_000;
/** Large enough for all servers of the whole run. */
const HOST_UNITS = 2 ** 30;

/** A cell's database, with the scheduler's view of it. */
interface BenchCell {
  readonly name: string;
  readonly view: LedgerView;
  readonly claims: ClaimsInFlight;
  readonly dispatches: Batcher<Dispatch, DispatchOutcome>;
  close(): Promise<void>;
}

/** Decisions a second whose claims, servers and tasks are committed in four cells' databases, followed by replication. */
export async function reportDurable(): Promise<void> {
  const server = await startEmbedded();
  const cells: BenchCell[] = [];
  try {
    for (let cell = 0; cell < CELLS; cell += 1) {
      const name = `cell${cell}`;
      await ensureDatabase(server.url("postgres"), name);
      cells.push(await openCell(name, server.url(name)));
    }
    report("decisions with durable claims in four databases", await measure(() => decisionsPerSecond(cells)), "/s");
  } finally {
    await Promise.all(cells.map((cell) => cell.close()));
    await server.stop();
  }
}

async function openCell(name: string, url: string): Promise<BenchCell> {
  await migrate(url, "cell");
  const pool = createPool({ url, applicationName: "bench", connectionsMax: 4 });
  const ledger = new PostgresLedger(pool);
  const store = new PostgresCellStore(pool);
  const trees = Array.from({ length: HOSTS_PER_CELL }, (_, host) => hostTree(host));
  for (let at = 0; at < trees.length; at += TREES_BATCH) await ledger.putTrees(trees.slice(at, at + TREES_BATCH));
  const hosts = trees.map(({ root }, host) => ({ name: hostName(host), rootProvider: root }));
  await store.hostsUp("agent", hosts);
  const view = new LedgerView();
  const events = { loaded: () => {}, lost: () => {} };
  const follower = new LedgerFollower({ cell: name, databaseUrl: url, view, clock: systemClock, events });
  follower.start();
  await follower.waitUntilSeen(30_000);
  const claims = new ClaimsInFlight({ view, source: follower, clock: systemClock, expiryMs: CLAIM_EXPIRY_MS });
  return {
    name,
    view,
    claims,
    dispatches: new Batcher({ run: (dispatches) => store.dispatch(dispatches), maxItems: BATCH_MAX, concurrency: 1 }),
    async close() {
      claims.close();
      await follower.close();
      await pool.end();
    },
  };
}

function hostTree(host: number): ProviderTree {
  const uuid = providerOf(host);
  const inventory = {
    total: HOST_UNITS,
    reserved: 0,
    minUnit: 1,
    maxUnit: HOST_UNITS,
    stepSize: 1,
    allocationRatio: 1,
  };
  const inventories = new Map(CLASSES.map((name) => [name, inventory]));
  return {
    root: uuid,
    providers: [{ uuid, name: hostName(host), parent: null, expected: "any", inventories, traits: new Set() }],
  };
}

async function decisionsPerSecond(cells: readonly BenchCell[]): Promise<number> {
  const chooser = new HostChooser();
  const { weighers } = allRules("scheduler-1");
  const random = seededRandom(5);
  const startedMs = performance.now();
  let placed = 0;
  const placeOne = async (): Promise<void> => {
    const flavor = flavorAt(random);
    const spec = specOf(flavor, randomUUID());
    const seed = Math.floor(random() * 2 ** 32);
    const options = { seed, alternates: 2, weighers, spread: 5, spreadTolerance: 0.05 };
    const choice = chooser.choose(QUERIES[flavor]!, cells, options);
    if (choice.kind === "none") throw new Error("there is room for all");
    const cell = cells.find(({ name }) => name === choice.cell)!;
    const task = buildTask(randomUUID(), spec, { selections: choice.selections, attemptsMax: 3 });
    const items = itemsOfSelection(choice.selections[0]!);
    cell.claims.ask(task.id, items);
    const owner = { projectId: spec.projectId, userId: spec.userId, type: CONSUMER_TYPE_INSTANCE };
    const outcome = await cell.dispatches.submit({ task, change: claim(consumerUuid(spec.uuid), owner, items) });
    if (outcome.kind !== "dispatched") throw new Error(`a claim was refused: ${outcome.kind}`);
    cell.claims.commit(task.id, outcome.xid);
    placed += 1;
  };
  const placeUntilEnd = async (): Promise<void> => {
    while (performance.now() < startedMs + RUN_MS) await placeOne();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, placeUntilEnd));
  return (placed * 1_000) / (performance.now() - startedMs);
}
