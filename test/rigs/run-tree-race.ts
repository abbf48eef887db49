import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { CellHistoryWatch } from "../../audit/cell-history-watch.ts";
import { capacityFactsOf } from "../../core/audit/audit-cloud.ts";
import { checkCapacity } from "../../core/audit/check-capacity.ts";
import { freshDatabase } from "./databases.ts";
import { brokenSums } from "./ledger-laws.ts";
import { readCellFacts } from "./read-cell-facts.ts";
import { TreeRace, type TreeRaceReport } from "./tree-race.ts";

export interface AuditedTreeRace extends TreeRaceReport {
  /** Violations of law 1 at any committed moment, and at the end. */
  readonly violations: readonly unknown[];
  /** Transactions whose moments were checked. */
  readonly audited: number;
}

/** Runs a race in a database of its own, with an auditor that checks each transaction of the ledger. */
export async function runTreeRace(goesOn: () => boolean): Promise<AuditedTreeRace> {
  const database = await freshDatabase("cell");
  const pool = createPool({ url: database.url, applicationName: "tree race", connectionsMax: 10 });
  const violations: unknown[] = [];
  const watch = new CellHistoryWatch({ name: "cell", databaseUrl: database.url, agents: [] } as never, {
    broken: (violation) => void violations.push(violation),
    followed: () => {},
    lost: (_cell, reason) => void violations.push(`nobody checks: ${reason}`),
  });
  try {
    await watch.start();
    const report = await new TreeRace(pool, goesOn).run();
    await watch.catchUp();
    violations.push(...checkCapacity(capacityFactsOf(await readCellFacts("cell", database.url))));
    violations.push(...brokenSums(await new PostgresLedger(pool).dump()));
    return { ...report, violations, audited: watch.transactions };
  } finally {
    await watch.close();
    await pool.end();
    await database.drop();
  }
}
