import { describe, expect, it } from "vitest";
import { anyChange, anyCommand, initialTrees, type LedgerCommand } from "../../test/rigs/ledger-commands.ts";
import { brokenSums, overCapacity } from "../../test/rigs/ledger-laws.ts";
import fc from "../../test/rigs/property.ts";
import type { AllocationChange } from "./allocation-change.ts";
import type { LedgerDump } from "./ledger-dump.ts";
import { emptyLedger, evolve } from "./ledger-state.ts";
import { PureLedger } from "./pure-ledger.ts";
import type { RowChange } from "./row-change.ts";

function ledgerAfter(commands: readonly LedgerCommand[]): PureLedger {
  const ledger = new PureLedger();
  for (const tree of initialTrees) ledger.putTree(tree);
  for (const command of commands) run(ledger, command);
  return ledger;
}

function run(ledger: PureLedger, command: LedgerCommand): readonly RowChange[] {
  return command.kind === "allocations"
    ? command.changes.flatMap((change) => ledger.applyAllocations(change).rows)
    : command.trees.flatMap((tree) => ledger.putTree(tree).rows);
}

const commands = fc.array(anyCommand, { maxLength: 20 });
const changes = fc.array(anyChange, { minLength: 1, maxLength: 60 });

describe("the pure ledger, whatever is asked of it", () => {
  it("keeps used equal to the sum of the allocations", () => {
    fc.assert(
      fc.property(commands, (all) => {
        expect(brokenSums(ledgerAfter(all).dump())).toEqual([]);
      }),
    );
  });

  it("never takes an inventory beyond its capacity while none shrinks", () => {
    fc.assert(
      fc.property(changes, (all) => {
        expect(overCapacity(ledgerAfter([{ kind: "allocations", changes: all }]).dump())).toEqual([]);
      }),
    );
  });

  it("never raises the use of an inventory that is over its capacity", () => {
    fc.assert(
      fc.property(commands, changes, (before, after) => {
        const ledger = ledgerAfter(before);
        for (const change of after) {
          const over = overUse(ledger.dump());
          ledger.applyAllocations(change);
          for (const [key, used] of overUse(ledger.dump())) expect(used).toBeLessThanOrEqual(over.get(key) ?? -1);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("changes nothing and returns no rows when it refuses", () => {
    fc.assert(
      fc.property(commands, anyChange, (all, change) => {
        const ledger = ledgerAfter(all);
        const before = ledger.dump();
        const { outcome, rows } = ledger.applyAllocations(change);
        if (outcome.kind === "committed") return;
        expect(rows).toEqual([]);
        expect(ledger.dump()).toEqual(before);
      }),
    );
  });

  it("returns all rows that a view needs to follow it", () => {
    fc.assert(
      fc.property(commands, anyCommand, (all, last) => {
        const ledger = ledgerAfter(all);
        const followed = tableOf(ledger.rows());
        for (const row of run(ledger, last)) applyRow(followed, row);
        expect(followed).toEqual(tableOf(ledger.rows()));
      }),
    );
  });

  it("a move to another consumer changes the use of no provider", () => {
    fc.assert(
      fc.property(commands, (all) => {
        const ledger = ledgerAfter(all);
        const before = ledger.dump();
        const [holder] = before.consumers;
        if (holder === undefined) return;
        const to = "d0000000-0000-4000-8000-000000000001" as typeof holder.uuid;
        const { rows } = ledger.applyAllocations({
          steps: [{ kind: "move", from: holder.uuid, to, toType: "MIGRATION" }],
        });
        expect(rows).toEqual([]);
        expect(ledger.dump().providers).toEqual(before.providers);
        expect(ledger.allocationsOf(to)).toEqual(holder.items);
        expect(ledger.allocationsOf(holder.uuid)).toEqual([]);
      }),
    );
  });

  it("is in its initial state after everything is released", () => {
    fc.assert(
      fc.property(changes, (all) => {
        const ledger = ledgerAfter([{ kind: "allocations", changes: all }]);
        const owner = { projectId: "", userId: "", type: "" };
        const steps = ledger.dump().consumers.map(({ uuid: consumer }): AllocationChange["steps"][number] => ({
          kind: "replace",
          consumer,
          expected: "any",
          owner,
          items: [],
        }));
        expect(ledger.applyAllocations({ steps }).outcome.kind).toBe("committed");
        const dump = ledger.dump();
        expect(dump.consumers).toEqual([]);
        expect(
          dump.providers.flatMap(({ inventories }) => [...inventories.values()]).filter(({ used }) => used > 0),
        ).toEqual([]);
      }),
    );
  });
});

describe("evolve", () => {
  it("keeps its indexes consistent with the providers", () => {
    fc.assert(
      fc.property(commands, (all) => {
        const ledger = ledgerAfter(all);
        const state = emptyLedger();
        const providers = new Map(ledger.dump().providers.map((provider) => [provider.uuid, provider]));
        evolve(state, { providers, consumers: new Map(), rows: [] });
        expect(new Set(state.names.keys())).toEqual(new Set([...providers.values()].map(({ name }) => name)));
        expect([...state.trees.values()].reduce((sum, members) => sum + members.size, 0)).toBe(providers.size);
      }),
    );
  });
});

function overUse(dump: LedgerDump): ReadonlyMap<string, number> {
  return new Map(overCapacity(dump).map((line) => [line.split(":")[0]!, Number(/used (\d+)/.exec(line)?.[1])]));
}

/** The latest row of each subject, as a view would hold them. */
function tableOf(rows: readonly RowChange[]): Map<string, RowChange> {
  const table = new Map<string, RowChange>();
  for (const row of rows) applyRow(table, row);
  return table;
}

function applyRow(table: Map<string, RowChange>, row: RowChange): void {
  switch (row.kind) {
    case "class-known":
    case "class-forgotten":
    case "class-renamed":
    case "trait-known":
    case "trait-forgotten":
      throw new Error("the pure ledger keeps no list of names");
    case "provider-put":
      table.set(row.uuid, row);
      break;
    case "provider-removed":
      table.delete(row.uuid);
      break;
    case "inventory-put":
      table.set(`${row.provider} inventory ${row.resourceClass}`, row);
      break;
    case "inventory-removed":
      table.delete(`${row.provider} inventory ${row.resourceClass}`);
      break;
    case "trait-added":
      table.set(`${row.provider} trait ${row.trait}`, row);
      break;
    case "trait-removed":
      table.delete(`${row.provider} trait ${row.trait}`);
      break;
    case "aggregate-added":
      table.set(`${row.provider} aggregate ${row.aggregate}`, row);
      break;
    case "aggregate-removed":
      table.delete(`${row.provider} aggregate ${row.aggregate}`);
      break;
    case "host-put":
      table.set(`host ${row.host}`, row);
      break;
    case "host-removed":
      table.delete(`host ${row.host}`);
      break;
    case "server-put":
      table.set(`server ${row.uuid}`, row);
      break;
    case "server-removed":
      table.delete(`server ${row.uuid}`);
      break;
    case "move-put":
      table.set(`move ${row.uuid}`, row);
      break;
    case "move-removed":
      table.delete(`move ${row.uuid}`);
      break;
    default:
      row satisfies never;
  }
}
