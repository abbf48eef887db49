import type { ClientBase } from "pg";
import { type Checkpoint, ensureCheckpoints, type Facts, readCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import { compareFacts } from "./facts.ts";
import { ImportError } from "./import-error.ts";

// An arbitrary advisory lock key, the same for all imports, so that only one import at a time runs on a ledger.
const IMPORT_LOCK = 7_236_418_052;

/**
 * Where the import begins: at the start, where an interrupted one stopped, or (done) nowhere. Refuses with an `ImportError`
 * when the ledger has rows that no import wrote, or when the source is not the one that was interrupted.
 */
export async function beginImport(
  ledger: ClientBase,
  given: { readonly source: string; readonly facts: Facts; readonly restart: boolean },
): Promise<Checkpoint> {
  const { rows } = await ledger.query<{ locked: boolean }>("select pg_try_advisory_lock($1) as locked", [IMPORT_LOCK]);
  if (!rows[0]?.locked)
    throw new ImportError("import-running", "another import into this ledger is running: wait until it has ended");
  await ensureCheckpoints(ledger);
  if (given.restart) await emptyLedger(ledger);
  const known = await readCheckpoint(ledger);
  if (known !== null) {
    if (known.doneAt === null) requireSameSource(known, given);
    return known;
  }
  const { rows: held } = await ledger.query<{ any: boolean }>("select exists (select from resource_providers) as any");
  if (held[0]?.any)
    throw new ImportError(
      "ledger-not-empty",
      "the ledger has resource providers; an import needs an empty one, or --restart to empty it",
    );
  const fresh: Checkpoint = {
    source: given.source,
    facts: given.facts,
    step: 0,
    afterId: 0,
    rejected: [],
    doneAt: null,
  };
  await writeCheckpoint(ledger, fresh);
  return fresh;
}

function requireSameSource(known: Checkpoint, given: { readonly source: string; readonly facts: Facts }): void {
  if (known.source !== given.source)
    throw new ImportError(
      "other-source",
      `an import from ${known.source} was interrupted; finish it, or start again with --restart`,
    );
  const [first] = compareFacts(given.facts, known.facts);
  if (first === undefined) return;
  throw new ImportError(
    "source-changed",
    `the source has changed since the import began (${first.fact}: ${first.ledger} then, ${first.source} now): stop its writers and start again with --restart`,
  );
}

/** Removes all providers and consumers with everything they have. Refuses a ledger on which servers run. */
async function emptyLedger(ledger: ClientBase): Promise<void> {
  const { rows } = await ledger.query<{ used: boolean }>(
    "select exists (select from hosts) or exists (select from servers) as used",
  );
  if (rows[0]?.used)
    throw new ImportError(
      "ledger-in-use",
      "the cell has hosts or servers, so its ledger is not emptied: import into a cell that has none",
    );
  await ledger.query("begin");
  for (const statement of [
    "delete from allocations",
    "delete from consumers",
    "update inventories set used = 0 where used > 0",
    "delete from inventories",
    "delete from provider_traits",
    "delete from provider_aggregates",
    "update resource_providers set parent_id = null where parent_id is not null",
    "delete from resource_providers",
    "delete from placement_import",
  ])
    await ledger.query(statement);
  await ledger.query("commit");
}
