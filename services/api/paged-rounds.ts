/** Rows of one page, and pages of one round. */
const PAGE_SIZE = 100;
const PAGES_MAX = 10;
/** A neighbour that is down is not asked about all rows. */
const ERRORS_MAX = 5;

/**
 * Works through a long list in rounds, page by page. A round takes a limited number of pages, and the next one continues after the last page of a
 * round that did not reach the end of the list. A page whose work fails is read again in the next round.
 */
export class PagedRounds<Row extends { readonly id: string }> {
  readonly #read: (after: string | null, limit: number) => Promise<readonly Row[]>;
  /** The id of the last row that was worked on, or null at the beginning of the list. */
  #after: string | null = null;

  /** `read` returns the rows that follow the row with the id `after`, at most `limit` of them. */
  constructor(read: (after: string | null, limit: number) => Promise<readonly Row[]>) {
    this.#read = read;
  }

  /** Runs one round. Rejects as the reading and the work do. */
  async run(work: (page: readonly Row[]) => Promise<void>): Promise<void> {
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const page = await this.#read(this.#after, PAGE_SIZE);
      await work(page);
      this.#after = page.length < PAGE_SIZE ? null : (page.at(-1)?.id ?? null);
      if (this.#after === null) return;
    }
  }

  /**
   * Runs one round. A row whose work fails does not stop the others; after ERRORS_MAX failures the round ends, and the next one starts behind the last row that
   * was tried. Failed rows are tried again in the next pass through the list. `begin` is given each page, and resolves with the work on one of its rows.
   * Rejects with an AggregateError whose message is the number of failures and `failure`; errors of reading and of `begin` reject at once.
   */
  async runEach(failure: string, begin: (page: readonly Row[]) => Promise<(row: Row) => Promise<void>>): Promise<void> {
    const errors: unknown[] = [];
    for (let pages = 0; pages < PAGES_MAX && errors.length < ERRORS_MAX; pages++) {
      const page = await this.#read(this.#after, PAGE_SIZE);
      const work = await begin(page);
      let next = page.length < PAGE_SIZE ? null : (page.at(-1)?.id ?? null);
      for (const row of page) {
        await work(row).catch((error: unknown) => errors.push(error));
        if (errors.length < ERRORS_MAX) continue;
        next = row.id;
        break;
      }
      this.#after = next;
      if (next === null) break;
    }
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} ${failure}`);
  }
}
