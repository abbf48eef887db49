import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { malformedList } from "../../core/ledger/decide-tree.ts";
import type { LedgerDump } from "../../core/ledger/ledger-dump.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyLedgerTables } from "../rigs/empty-ledger.ts";
import {
  anyCommand,
  anyReport,
  initialTrees,
  type LedgerCommand,
  type ReportCommand,
} from "../rigs/ledger-commands.ts";
import { brokenSums } from "../rigs/ledger-laws.ts";
import fc from "../rigs/property.ts";
import { LedgerSession } from "./ledger-sessions.ts";

const RUNS = Number(process.env.BERTH_TEST_RUNS ?? 60);

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "ledger model test" });
  await pool.query("create sequence test_order");
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const run = (ledger: Ledger, command: LedgerCommand | ReportCommand): Promise<readonly unknown[]> => {
  if (command.kind === "reports") return ledger.reportTrees(command.reports);
  return command.kind === "allocations" ? ledger.applyAllocations(command.changes) : ledger.putTrees(command.trees);
};

describe("the ledger's two implementations", () => {
  it("answer every command alike and end in the same state", async () => {
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
      { numRuns: RUNS },
    );
  });

  it("take over reports of agents alike, amid claims and what others write, and no allocation is lost", async () => {
    const anything = fc.oneof({ weight: 2, arbitrary: anyCommand }, { weight: 1, arbitrary: anyReport });
    await fc.assert(
      fc.asyncProperty(fc.array(anything, { minLength: 1, maxLength: 12 }), async (commands) => {
        await emptyLedgerTables(pool);
        const postgres = new PostgresLedger(pool);
        const memory = new MemoryLedger();
        for (const command of [{ kind: "reports", reports: initialTrees } as const, ...commands]) {
          const before = await memory.dump();
          expect(await run(postgres, command)).toEqual(await run(memory, command));
          const after = await memory.dump();
          expect(await postgres.dump()).toEqual(after);
          expect(brokenSums(after)).toEqual([]);
          if (command.kind === "reports") expect(amountsOf(after)).toEqual(amountsOf(before));
        }
      }),
      { numRuns: Math.ceil(RUNS / 2) },
    );
  });

  it("agree on an order of the commands that several connections ran at once", async () => {
    const sessions = await Promise.all([1, 2, 3].map(() => LedgerSession.open(database.url)));
    try {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(anyCommand, { maxLength: 6 }), { minLength: 3, maxLength: 3 }),
          async (lists) => {
            await emptyLedgerTables(pool);
            const postgres = new PostgresLedger(pool);
            await postgres.putTrees(initialTrees);
            const settled = await Promise.allSettled(lists.map((list, index) => runAll(sessions[index]!, list)));
            const done = settled.flatMap((result) => {
              if (result.status === "rejected") throw result.reason;
              return result.value;
            });
            const memory = new MemoryLedger();
            await memory.putTrees(initialTrees);
            for (const { command, outcomes } of done.toSorted((a, b) => a.order - b.order)) {
              await replay(memory, command, outcomes);
            }
            const dump = await postgres.dump();
            expect(dump).toEqual(await memory.dump());
            expect(brokenSums(dump)).toEqual([]);
          },
        ),
        // There is no shrinking, because a smaller race would not reproduce the result.
        { numRuns: RUNS, endOnFailure: true },
      );
    } finally {
      await Promise.all(sessions.map((session) => session.close()));
    }
  });
});

interface Done {
  readonly command: LedgerCommand;
  readonly outcomes: readonly { readonly kind: string }[];
  /** Drawn after the locks were taken and before they are released, so of two conflicting commands the first has the lower number. */
  readonly order: number;
}

/** Runs one transaction for each batch of changes and each tree. A deadlock would reject, and none may occur. */
async function runAll(session: LedgerSession, commands: readonly LedgerCommand[]): Promise<Done[]> {
  const done: Done[] = [];
  for (const command of commands.flatMap(single)) {
    await session.query("begin");
    try {
      const outcomes =
        command.kind === "allocations"
          ? await session.apply(...command.changes)
          : await session.putTrees(...command.trees);
      const [row] = await session.query<{ order: string }>(`select nextval('test_order') as "order"`);
      await session.query("commit");
      done.push({ command, outcomes, order: Number(row!.order) });
    } catch (error) {
      await session.query("rollback");
      throw error;
    }
  }
  return done;
}

/** Well-formed trees, one for each command. */
function single(command: LedgerCommand): LedgerCommand[] {
  if (command.kind === "allocations") return [command];
  return command.trees.filter((tree) => malformedList(tree) === null).map((tree) => ({ kind: "trees", trees: [tree] }));
}

/**
 * Repeats the committed commands and expects the same answers. Refused commands are left out: a refused command did not lock the rows that
 * it found missing, so its place is somewhere before the number that it drew.
 */
async function replay(
  memory: MemoryLedger,
  command: LedgerCommand,
  outcomes: readonly { readonly kind: string }[],
): Promise<void> {
  const taken = (kind: string | undefined): boolean => kind === "committed" || kind === "replaced";
  const kept = outcomes.filter(({ kind }) => taken(kind));
  const again =
    command.kind === "allocations"
      ? await memory.applyAllocations(command.changes.filter((_, index) => taken(outcomes[index]?.kind)))
      : await memory.putTrees(command.trees.filter((_, index) => taken(outcomes[index]?.kind)));
  expect(again).toEqual(kept);
}

/** For each consumer and class, the sum over all providers. */
function amountsOf({ consumers }: LedgerDump): unknown {
  return consumers.map(({ uuid, items }) => {
    const amounts = Map.groupBy(items, (item) => item.resourceClass);
    const sums = [...amounts].map(([name, same]) => [name, same.reduce((sum, { amount }) => sum + amount, 0)] as const);
    return [uuid, Object.fromEntries(sums.toSorted(([a], [b]) => (a < b ? -1 : 1)))];
  });
}
