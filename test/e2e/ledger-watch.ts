import { createPool } from "../../adapters/postgres/client/pool.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { capacityOf } from "../../core/ledger/model.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import { systemClock } from "../../runtime/clock.ts";

/**
 * Watches one cell's ledger for overcommitment: in the log it sees every committed state of every inventory, and repeated snapshots show
 * whether `used` equals the sum of the allocations and is within capacity.
 */
export class LedgerWatch {
  /** Violations of the first law, in words. */
  readonly violations: string[] = [];
  /** Committed states of inventories that the log has shown since the start. */
  changes = 0;
  /** The number of compared snapshots. */
  snapshots = 0;
  readonly #follower: LedgerFollower;
  readonly #pool: ReturnType<typeof createPool>;
  #sampling: Promise<void> | null = null;
  #stopped = false;

  constructor(cell: { readonly name: string; readonly databaseUrl: string }) {
    this.#pool = createPool({ url: cell.databaseUrl, applicationName: "e2e watch", connectionsMax: 1 });
    const seeing = {
      applyAll: (changes: Iterable<RowChange>) => Iterator.from(changes).forEach((change) => void this.#see(change)),
    };
    this.#follower = new LedgerFollower({
      cell: cell.name,
      databaseUrl: cell.databaseUrl,
      view: { ...seeing, beginLoad: () => ({ ...seeing, show: () => undefined }) },
      clock: systemClock,
      events: { loaded: () => undefined, lost: (_, error) => this.violations.push(`lost the log: ${error.message}`) },
    });
  }

  /** Resolves when the watch sees every change from now on. */
  async start(): Promise<void> {
    this.#follower.start();
    await this.#follower.waitUntilSeen(60_000);
    this.changes = 0;
    this.#sampling = this.#sample();
  }

  /** Reads everything that was committed so far, and stops. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#sampling;
    await this.#follower.waitUntilSeen(60_000).finally(() => this.#follower.close());
    await this.#pool.end();
  }

  #see(change: RowChange): void {
    if (change.kind !== "inventory-put") return;
    this.changes += 1;
    const capacity = capacityOf(change.inventory);
    if (change.used <= capacity) return;
    this.violations.push(`${change.provider} ${change.resourceClass}: ${change.used} used of ${capacity}`);
  }

  async #sample(): Promise<void> {
    while (!this.#stopped) {
      const asked = this.#pool.query<{ what: string }>(`
        select format('provider %s class %s: used %s, allocated %s, of %s', i.provider_id, i.class_id, i.used,
          coalesce(a.amount, 0), ledger_capacity(i.total, i.reserved, i.allocation_ratio)) as what
        from inventories i
        left join (select provider_id, class_id, sum(amount) as amount from allocations group by 1, 2) a
          using (provider_id, class_id)
        where i.used <> coalesce(a.amount, 0) or i.used > ledger_capacity(i.total, i.reserved, i.allocation_ratio)`);
      // On a busy machine a connection may come too late. The next one will succeed.
      const rows = await asked.then(
        (answer) => answer.rows,
        (error: Error) => (/connection timeout/.test(error.message) ? null : Promise.reject(error)),
      );
      if (rows === null) continue;
      this.violations.push(...rows.map(({ what }) => what));
      this.snapshots += 1;
    }
  }
}
