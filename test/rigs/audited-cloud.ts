import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import type { AuditReport } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import type { AuditedCell } from "../../audit/read-cloud.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import {
  conductorId,
  dispatchOf,
  hostName,
  hostTree,
  providerOf,
  serverId,
  serverSpec,
  taskId,
} from "../contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "./databases.ts";
import { emptyCellTables } from "./empty-cell.ts";

/** Opens a cloud for the tests of a file, fills it again before each of them, and closes it after the last one. Returns the cloud of the present test. */
export function useAuditedCloud(): () => AuditedTestCloud {
  let cloud: AuditedTestCloud;
  beforeAll(async () => {
    cloud = await AuditedTestCloud.open();
  });
  afterAll(() => cloud.close());
  beforeEach(() => cloud.fill());
  return () => cloud;
}

/** Server 1 is ACTIVE on host 0, and server 2 is being built there, in cell c1. The databases of another cell are empty. */
class AuditedTestCloud {
  readonly pool: Pool;
  readonly apiPool: Pool;
  readonly cell: TestDatabase;
  readonly other: TestDatabase;
  readonly api: TestDatabase;

  private constructor(cell: TestDatabase, other: TestDatabase, api: TestDatabase) {
    [this.cell, this.other, this.api] = [cell, other, api];
    this.pool = createPool({ url: cell.url, applicationName: "audit test" });
    this.apiPool = createPool({ url: api.url, applicationName: "audit test" });
  }

  static async open(): Promise<AuditedTestCloud> {
    const [cell, other, api] = await Promise.all([freshDatabase("cell"), freshDatabase("cell"), freshDatabase("api")]);
    return new AuditedTestCloud(cell, other, api);
  }

  async close(): Promise<void> {
    await Promise.all([this.pool.end(), this.apiPool.end()]);
    await Promise.all([this.cell.drop(), this.other.drop(), this.api.drop()]);
  }

  /** Fills the databases again. */
  async fill(): Promise<void> {
    await emptyCellTables(this.pool);
    await this.apiPool.query("truncate requests, cells");
    const store = new PostgresCellStore(this.pool);
    const requests = new PostgresApiStore(this.apiPool);
    await new PostgresLedger(this.pool).putTrees([hostTree(0, 10), hostTree(1, 10)]);
    await store.hostsUp(
      "agent",
      [0, 1].map((host) => ({ name: hostName(host), rootProvider: providerOf(host) })),
    );
    await store.renewLease({ id: conductorId(0), name: "conductor", leaseMs: 3_600_000 });
    await requests.putCell({ name: "c1", databaseUrl: this.cell.url, natsUrl: null, disabled: false });
    await requests.accept([serverSpec(1), serverSpec(2)]);
    await requests.assignCells([1, 2].map((server) => ({ serverUuid: serverId(server), from: null, to: "c1" })));
    await store.dispatch([1, 2].map((server) => dispatchOf({ server, task: server, hosts: [0, 1], vcpus: 2 })));
    const [taken] = await store.takeTasks(conductorId(0), [taskId(1), taskId(2)]);
    await store.commitActive([{ taskId: taskId(1), serverUuid: serverId(1), epoch: taken!.epoch, selection: 0 }]);
  }

  audit(
    guests: Readonly<Record<string, readonly ReturnType<typeof auditedGuest>[]>> = {},
    cells: readonly AuditedCell[] = [{ name: "c1", databaseUrl: this.cell.url }],
  ): Promise<AuditReport> {
    const runningGuests = (): ReadonlyMap<string, readonly ReturnType<typeof auditedGuest>[]> =>
      new Map(Object.entries(guests));
    return auditTwice({
      apiUrl: this.api.url,
      cells: cells.map((audited) => (audited.name === "c1" ? { ...audited, runningGuests } : audited)),
      pauseMs: 0,
      patienceMs: 0,
      conductorSettings: ["cell", "cellDatabaseUrl"],
    });
  }
}

/** A guest of the attempt at this selection of the server's first task. */
export const auditedGuest = (server: number, selection = 0) => ({
  serverUuid: serverId(server),
  attemptId: attemptIdOf(taskId(server), selection),
});

/** The law and the text of each violation. */
export const foundViolations = (report: AuditReport): string[] =>
  report.violations.map(({ law, what }) => `${law}: ${what}`);
