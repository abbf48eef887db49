import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { freshDatabase, type TestDatabase } from "../../test/rigs/databases.ts";
import {
  consumerUuidOf,
  createPlacementTables,
  fillPlacementTables,
  type PlacementTables,
  providerUuidOf,
} from "../../test/rigs/placement-tables.ts";
import { ImportError } from "./import-error.ts";
import { Progress } from "./progress.ts";
import { isRight, reportLines } from "./report.ts";
import { type ImportResult, type ImportWatcher, runImport } from "./run-import.ts";
import { openSource } from "./source.ts";

let tables: PlacementTables;
let database: TestDatabase;
let ledger: pg.Client;

beforeAll(async () => {
  tables = await createPlacementTables(inject("postgresUrl"), `test_placement_${process.pid}`);
  await fillPlacementTables(tables.client);
});
afterAll(() => tables.drop());
beforeEach(async () => {
  database = await freshDatabase("cell");
  ledger = new pg.Client({ connectionString: database.url });
  await ledger.connect();
});
afterEach(async () => {
  await ledger.end();
  await database.drop();
});

const silent: ImportWatcher = { began: () => {}, copied: () => {} };

/** An import with separate connections to the source and to the ledger. */
async function importOnce(
  options: { readonly batchRows?: number; readonly restart?: boolean; readonly watcher?: ImportWatcher } = {},
): Promise<ImportResult> {
  const source = await openSource(tables.url);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const { batchRows = 100, restart = false, watcher = silent } = options;
    return await runImport(source, client, { batchRows, restart }, watcher);
  } finally {
    await source.close();
    await client.end();
  }
}

const read = async (text: string) =>
  (await ledger.query<unknown[]>({ text, rowMode: "array" })).rows.map((row) => row.join(" "));

/** The whole content of the ledger, by names instead of ids. */
async function ledgerRows() {
  return {
    providers: await read(`select p.uuid, p.name, p.generation, parent.name, root.name,
      to_char(p.updated_at at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS') from resource_providers p
      join resource_providers root on root.id = p.root_id left join resource_providers parent on parent.id = p.parent_id order by p.id`),
    traits: await read(`select p.name, t.name from provider_traits x join resource_providers p on p.id = x.provider_id
      join traits t on t.id = x.trait_id order by 1, 2`),
    aggregates: await read(
      `select p.name, aggregate from provider_aggregates x join resource_providers p on p.id = x.provider_id order by 1`,
    ),
    inventories:
      await read(`select p.name, c.name, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used
      from inventories i join resource_providers p on p.id = i.provider_id join resource_classes c on c.id = i.class_id order by 1, 2`),
    consumers: await read("select uuid, generation, project_id, user_id, type from consumers order by uuid"),
    allocations: await read(`select a.consumer_uuid, p.name, c.name, amount from allocations a
      join resource_providers p on p.id = a.provider_id join resource_classes c on c.id = a.class_id order by 1, 2, 3`),
  };
}

const EVERYTHING = {
  providers: [
    `${providerUuidOf(1)} host 1 10  host 1 2025-01-02 03:04:05`,
    `${providerUuidOf(2)} host 2 20 host 1 host 1 2024-02-03 04:05:06`,
    `${providerUuidOf(3)} host 3 30 host 8 host 1 2024-02-03 04:05:06`,
    `${providerUuidOf(4)} host 4 40  host 4 2025-01-02 03:04:05`,
    `${providerUuidOf(5)} host 5 50 host 4 host 4 2024-02-03 04:05:06`,
    `${providerUuidOf(6)} host 6 60  host 6 2025-01-02 03:04:05`,
    `${providerUuidOf(7)} host 7 70  host 7 2025-01-02 03:04:05`,
    `${providerUuidOf(8)} host 8 80 host 2 host 1 2024-02-03 04:05:06`,
  ],
  traits: ["host 1 HW_CPU_X86_AVX2", "host 3 CUSTOM_FAST", "host 3 HW_CPU_X86_AVX2", "host 6 CUSTOM_FAST"],
  aggregates: ["host 1 b0000000-0000-4000-8000-000000000001", "host 6 b0000000-0000-4000-8000-000000000001"],
  inventories: [
    "host 1 VCPU 8 1 1 8 1 4 9",
    "host 3 CUSTOM_GPU 2 0 1 1 1 1 1",
    "host 4 VCPU 16 0 1 16 1 1.5 7",
    "host 6 DISK_GB 1000 100 10 1000 10 1 50",
    "host 7 VCPU 4 0 1 4 1 1 0",
  ],
  consumers: [
    `${consumerUuidOf(1)} 3 project-1 user-1 INSTANCE`,
    `${consumerUuidOf(2)} 1 project-2 user-1 unknown`,
    `${consumerUuidOf(3)} 2 project-1 user-1 INSTANCE`,
  ],
  allocations: [
    `${consumerUuidOf(1)} host 1 VCPU 4`,
    `${consumerUuidOf(1)} host 3 CUSTOM_GPU 1`,
    `${consumerUuidOf(1)} host 6 DISK_GB 50`,
    `${consumerUuidOf(2)} host 4 VCPU 7`,
    `${consumerUuidOf(3)} host 1 VCPU 5`,
  ],
};

test.each([1, 100])("imports everything, in batches of %i rows, and verifies it", async (batchRows) => {
  const result = await importOnce({ batchRows });
  expect(result).toMatchObject({ kind: "imported", differences: [], rejected: [], overfull: [] });
  expect(await ledgerRows()).toEqual(EVERYTHING);
  expect(reportLines(result).at(-1)).toBe("the import is complete: all counts and sums agree");
});

test("leaves ids for new providers", async () => {
  await importOnce();
  const { rows } = await ledger.query(
    `insert into resource_providers (uuid, name, root_id)
     values (gen_random_uuid(), 'new', currval(pg_get_serial_sequence('resource_providers', 'id'))) returning id`,
  );
  expect(rows).toEqual([{ id: 9 }]);
});

test.each([1, 4])("continues where it was interrupted, after every %i batches", async (batches) => {
  let runs = 0;
  for (let result: ImportResult | null = null; result === null; runs += 1) {
    let left = batches;
    const copied = () => {
      left -= 1;
      if (left === 0) throw new Error("interrupted");
    };
    result = await importOnce({ batchRows: 2, watcher: { ...silent, copied } }).catch((error: Error) => {
      expect(error.message).toBe("interrupted");
      return null;
    });
    expect(runs).toBeLessThan(50);
    if (result !== null) expect(isRight(result)).toBe(true);
  }
  expect(runs).toBeGreaterThan(1);
  expect(await ledgerRows()).toEqual(EVERYTHING);
});

test("does nothing once it is done, unless it is told to start over", async () => {
  await importOnce();
  expect(await importOnce()).toMatchObject({
    kind: "already-done",
    source: expect.stringContaining("/test_placement_"),
  });
  await ledger.query("update consumers set project_id = 'changed'");
  expect(await importOnce({ restart: true })).toMatchObject({ kind: "imported", differences: [] });
  expect(await ledgerRows()).toEqual(EVERYTHING);
});

test("only reads from the source", async () => {
  const source = await openSource(tables.url);
  await expect(source.query("delete from allocations")).rejects.toThrow("read-only transaction");
  await source.close();
});

describe("refuses, and changes nothing,", () => {
  const refusal = (code: string) => expect.objectContaining({ name: "ImportError", code });
  const addProvider = "insert into resource_providers (uuid, name, root_id) values (gen_random_uuid(), 'own', 1)";
  test("a ledger that has providers of its own", async () => {
    await ledger.query(addProvider);
    await expect(importOnce()).rejects.toEqual(refusal("ledger-not-empty"));
    expect(await read("select name from resource_providers")).toEqual(["own"]);
  });
  test("to empty a ledger that is in use", async () => {
    await ledger.query(addProvider);
    await ledger.query(
      "insert into hosts (name, root_provider, agent_id, up) select 'host', uuid, 'agent', true from resource_providers",
    );
    await expect(importOnce({ restart: true })).rejects.toEqual(refusal("ledger-in-use"));
    expect(await read("select name from resource_providers")).toEqual(["own"]);
  });
  test("to continue when the source has changed, or is another database", async () => {
    const copied = () => {
      throw new ImportError("import-running", "interrupted");
    };
    await importOnce({ watcher: { ...silent, copied } }).catch(() => {});
    await tables.client.query("update resource_providers set generation = generation + 1 where id = 7");
    await expect(importOnce()).rejects.toEqual(refusal("source-changed"));
    await tables.client.query("update resource_providers set generation = generation - 1 where id = 7");
    await ledger.query("update placement_import set source = 'elsewhere'");
    await expect(importOnce()).rejects.toEqual(refusal("other-source"));
    expect(isRight(await importOnce({ restart: true }))).toBe(true);
  });
  test("to run twice at the same time", async () => {
    let second: Promise<ImportResult> | null = null;
    // A lock holds up the first import until the second one has ended.
    const beginSecond = async () => {
      await ledger.query("begin");
      try {
        await ledger.query("lock table resource_providers, placement_import in exclusive mode");
        return await importOnce();
      } finally {
        await ledger.query("rollback");
      }
    };
    await importOnce({
      batchRows: 1,
      watcher: {
        ...silent,
        copied: () => {
          second ??= beginSecond();
          second.catch(() => {});
        },
      },
    });
    await expect(second).rejects.toEqual(refusal("import-running"));
  });
});

describe("data that does not fit", () => {
  const damaged = async (damage: string, check: (result: ImportResult & { readonly kind: "imported" }) => void) => {
    const name = `test_damaged_${process.pid}`;
    const whole = tables;
    tables = await createPlacementTables(inject("postgresUrl"), name);
    try {
      await fillPlacementTables(tables.client);
      await tables.client.query(damage);
      const result = await importOnce({ batchRows: 2 });
      if (result.kind !== "imported") throw new Error(`it is ${result.kind}`);
      check(result);
    } finally {
      await tables.drop();
      tables = whole;
    }
  };

  test.each([
    [
      "an allocation that nobody consumes",
      "insert into allocations (resource_provider_id, consumer_id, resource_class_id, used) values (1, 'c0ffee00-0000-4000-8000-000000000000', 1, 1)",
      "orphan allocations: their consumer does not exist: 1 (consumer c0ffee00-0000-4000-8000-000000000000, provider 1)",
      "allocations of VCPU: amount: 17 in the source, 16 in the ledger",
    ],
    [
      "an allocation of an inventory that is not there",
      `insert into allocations (resource_provider_id, consumer_id, resource_class_id, used) values (7, '${consumerUuidOf(1)}', 2, 1)`,
      `orphan allocations: their inventory does not exist: 1 (consumer ${consumerUuidOf(1)}, provider 7, class id`,
      "allocations of DISK_GB: row_count: 2 in the source, 1 in the ledger",
    ],
    [
      "an allocation of an unknown class",
      `insert into allocations (resource_provider_id, consumer_id, resource_class_id, used) values (7, '${consumerUuidOf(1)}', 77, 1)`,
      `allocations of unknown classes: 1 (consumer ${consumerUuidOf(1)}, provider 7, class id 77)`,
      "allocations of unknown classes: row_count: 1 in the source, 0 in the ledger",
    ],
    [
      "an inventory of an unknown class",
      "insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio) values (7, 77, 1, 0, 1, 1, 1, 1)",
      "inventories of unknown classes: 1 (provider 7, id 77)",
      "inventories of unknown classes: total: 1 in the source, 0 in the ledger",
    ],
    [
      "an inventory of a provider that is not there",
      "insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio) values (99, 1, 1, 0, 1, 1, 1, 1)",
      "inventories of providers that do not exist: 1 (provider 99, id 1)",
      "inventories of VCPU: row_count: 4 in the source, 3 in the ledger",
    ],
    [
      "an inventory with units of nothing",
      "update inventories set step_size = 0 where resource_provider_id = 7",
      "inventories whose units are not positive: 1 (provider 7, id 1)",
      "inventories of VCPU: row_count: 3 in the source, 2 in the ledger",
    ],
    [
      "a provider without a UUID",
      "update resource_providers set uuid = 'host' where id = 7",
      "providers without a valid UUID: 1 (host (host 7))",
      "providers: row_count: 8 in the source, 7 in the ledger",
    ],
    [
      "an aggregate that has gone",
      "insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (7, 9)",
      "aggregates that have no UUID: 1 (provider 7, id 9)",
      "provider aggregates: row_count: 3 in the source, 2 in the ledger",
    ],
  ])("is named, and counted as missing: %s", async (_what, damage, rejected, difference) => {
    await damaged(damage, (result) => {
      const lines = reportLines(result);
      expect(lines).toContainEqual(expect.stringContaining(`does not fit: ${rejected}`));
      expect(lines).toContain(`differs: ${difference}`);
      expect(lines.at(-1)).toBe("the import is not complete");
      expect(isRight(result)).toBe(false);
    });
  });

  test("of a provider that is left out includes its parts", async () => {
    await damaged("update resource_providers set uuid = 'host' where id = 1", (result) => {
      expect(result.rejected.map(({ what, count }) => `${what}: ${count}`)).toEqual([
        "providers without a valid UUID: 1",
        "providers whose root does not exist: 3",
        "providers whose parent does not exist: 2",
        "traits of providers that do not exist: 3",
        "aggregates of providers that do not exist: 1",
        "inventories of providers that do not exist: 2",
        "orphan allocations: their inventory does not exist: 3",
      ]);
    });
  });

  test("except a consumer whose project is gone, which is kept without an owner", async () => {
    await damaged("delete from projects where id = 2", (result) => {
      expect(result.differences).toEqual([]);
      expect(result.rejected).toEqual([
        {
          what: "consumers whose project or user does not exist: now owned by 00000000-0000-0000-0000-000000000000",
          count: 1,
          examples: [consumerUuidOf(2)],
        },
      ]);
    });
  });

  test("except inventories that are used beyond their total, which are kept and noted", async () => {
    await damaged("update inventories set total = 2 where resource_provider_id = 4", (result) => {
      expect(isRight(result)).toBe(true);
      expect(reportLines(result)).toContain(
        `note: more is used than there is: ${providerUuidOf(4)} (host 4): 7 of 3 VCPU`,
      );
    });
  });

  test("except databases from before consumers had types, which are imported", async () => {
    await damaged("alter table consumers drop column consumer_type_id; drop table consumer_types", (result) => {
      expect(isRight(result)).toBe(true);
    });
    expect(await read("select distinct type from consumers")).toEqual(["unknown"]);
  });
});

describe("progress", () => {
  const shown = (isTTY: boolean) => {
    const clock = new ManualClock();
    const written: string[] = [];
    const progress = new Progress({ write: (text) => written.push(text), isTTY, columns: 80 }, clock, 200);
    progress.resumeAt(50);
    for (let batch = 0; batch < 3; batch += 1) {
      clock.advance(1_000);
      progress.add("inventories", 50);
    }
    progress.finish();
    return written;
  };
  test("is a bar that overwrites itself on a terminal", () => {
    const written = shown(true);
    expect(written[1]).toBe(`\r${"█".repeat(23)}${"░".repeat(7)}   75 %  150 of 200 rows  50/s  inventories\x1b[K`);
    expect(written.at(-1)).toBe("\n");
  });
  test("is a new line at intervals where there is no terminal", () => {
    expect(shown(false)).toEqual(
      [" 50 %  100 of 200 rows  50/s  inventories\n", "100 %  200 of 200 rows  50/s  inventories\n"].concat(
        "100 %  200 of 200 rows  50/s  done\n",
      ),
    );
  });
  test("counts an empty import as complete", () => {
    const written: string[] = [];
    new Progress({ write: (text) => written.push(text) }, systemClock, 0).finish();
    expect(written).toEqual(["100 %  0 of 0 rows  0/s  done\n"]);
  });
});
