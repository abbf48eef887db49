import fc from "fast-check";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemoryLedger } from "../../adapters/memory/memory-ledger.ts";
import { createPool } from "../../adapters/postgres/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/postgres-ledger.ts";
import type { Ledger } from "../../core/ledger/ledger-port.ts";
import { freshDatabase, type TestDatabase } from "../databases.ts";
import { emptyLedgerTables } from "../empty-ledger.ts";
import { anyCommand, initialTrees, type LedgerCommand } from "../ledger-commands.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "ledger model test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const run = (ledger: Ledger, command: LedgerCommand): Promise<readonly unknown[]> =>
  command.kind === "allocations" ? ledger.applyAllocations(command.changes) : ledger.putTrees(command.trees);

describe("the ledger's two bodies", () => {
  it("answer every command alike and end in the same state", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyCommand, { minLength: 1, maxLength: 12 }), async (commands) => {
        await emptyLedgerTables(pool);
        const postgres = new PostgresLedger(pool);
        const memory = new MemoryLedger();
        for (const command of [{ kind: "trees", trees: initialTrees } as const, ...commands]) {
          expect(await run(postgres, command)).toEqual(await run(memory, command));
          expect(await postgres.dump()).toEqual(await memory.dump());
        }
      }),
      { numRuns: Number(process.env.BERTH_TEST_RUNS ?? 60) },
    );
  });
});
