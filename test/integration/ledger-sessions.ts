import pg from "pg";
import { decodeOutcome, encodeChanges, type LedgerApplyRow } from "../../adapters/postgres/ledger/encode-changes.ts";
import { CLAIM_ALONE, encodeLoneClaim } from "../../adapters/postgres/ledger/encode-first-claims.ts";
import { decodeTreeOutcome, encodeTrees, type PutTreesRow } from "../../adapters/postgres/ledger/encode-trees.ts";
import { assert } from "../../core/assert.ts";
import type { AllocationChange, AllocationOutcome } from "../../core/ledger/allocation-change.ts";
import type { ProviderTree, TreeOutcome } from "../../core/ledger/provider-tree.ts";
import { eventually } from "../rigs/eventually.ts";

/** A separate connection whose transactions a test begins and ends by hand, to make two of them meet at a given point. */
export class LedgerSession {
  readonly #client: pg.Client;
  readonly pid: number;

  private constructor(client: pg.Client, pid: number) {
    this.#client = client;
    this.pid = pid;
  }

  static async open(url: string): Promise<LedgerSession> {
    const client = new pg.Client({ connectionString: url, application_name: "ledger session" });
    await client.connect();
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    return new LedgerSession(client, rows[0]!.pid);
  }

  async apply(...changes: readonly AllocationChange[]): Promise<AllocationOutcome[]> {
    const { rows } = await this.#client.query<LedgerApplyRow>({
      name: "apply",
      text: "select * from ledger_apply($1::ledger_batch)",
      values: [encodeChanges(changes)],
    });
    return changes.map((change, index) => decodeOutcome(change, rows[index]!));
  }

  /** Makes the change as a lone first claim. Returns false when nothing was claimed. */
  async claimAlone(change: AllocationChange): Promise<boolean> {
    const values = encodeLoneClaim([change]);
    assert(values !== null, "the change is no first claim from a single provider");
    const { rows } = await this.#client.query<{ claimed: boolean }>({ name: "claim alone", text: CLAIM_ALONE, values });
    return rows[0]!.claimed;
  }

  async putTrees(...trees: readonly ProviderTree[]): Promise<TreeOutcome[]> {
    const { rows } = await this.#client.query<PutTreesRow>({
      name: "put",
      text: "select * from ledger_put_trees($1::ledger_tree_batch)",
      values: [encodeTrees(trees)],
    });
    return trees.map((tree, index) => decodeTreeOutcome(tree, rows[index]!));
  }

  async query<Row extends pg.QueryResultRow>(sql: string): Promise<readonly Row[]> {
    return (await this.#client.query<Row>(sql)).rows;
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

/**
 * Makes `second` wait for `first`: first does its work and stays uncommitted until second waits for its locks (or is done), then ends as
 * `end` says. Returns both answers.
 */
export async function meet<First, Second>(
  sessions: { readonly first: LedgerSession; readonly second: LedgerSession; readonly observer: LedgerSession },
  first: (session: LedgerSession) => Promise<First>,
  second: (session: LedgerSession) => Promise<Second>,
  end: "commit" | "rollback" = "commit",
): Promise<{ readonly first: First; readonly second: Second }> {
  await sessions.first.query("begin");
  const firstAnswer = await first(sessions.first);
  let done = false;
  const running = second(sessions.second).finally(() => {
    done = true;
  });
  await eventually(
    "the second waits for the first, or is done",
    async () => done || (await isBlocked(sessions.observer, sessions.second.pid)),
  );
  await sessions.first.query(end);
  return { first: firstAnswer, second: await running };
}

async function isBlocked(observer: LedgerSession, pid: number): Promise<boolean> {
  const [row] = await observer.query<{ blocked: boolean }>(
    `select cardinality(pg_blocking_pids(${pid})) > 0 as blocked`,
  );
  return row?.blocked === true;
}
