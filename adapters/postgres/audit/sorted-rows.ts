import type { StatementQueue } from "./statement-queue.ts";

/**
 * Tells Postgres that the cursors of this transaction will be read to their ends. It then sorts large tables, where it would by default follow an index, and fetch
 * one page of the table from the disk for nearly every row.
 */
export const READ_ALL = "set local cursor_tuple_fraction = 1; set local work_mem = '32MB'";

/**
 * The rows of a query that sorts them by a UUID. They are read through a cursor of the connection's transaction, a page at a time and one page ahead.
 * To read several databases side by side, call `fill` on the rows of each. Then take from each the rows below the least of the bounds.
 */
export class SortedRows<Row> {
  readonly #statements: StatementQueue;
  readonly #cursor: string;
  readonly #pageRows: number;
  readonly #keyOf: (row: Row) => string;
  #rows: Row[] = [];
  #coming: Promise<Row[]> | null;

  private constructor(statements: StatementQueue, cursor: string, pageRows: number, keyOf: (row: Row) => string) {
    this.#statements = statements;
    this.#cursor = cursor;
    this.#pageRows = pageRows;
    this.#keyOf = keyOf;
    this.#coming = this.#fetch();
  }

  /** Opens the cursor, whose name is part of the statement and must be an identifier. `keyOf` returns the UUID by which the query sorts. */
  static async open<Row>(
    statements: StatementQueue,
    { cursor, query, pageRows }: { readonly cursor: string; readonly query: string; readonly pageRows: number },
    keyOf: (row: Row) => string,
  ): Promise<SortedRows<Row>> {
    await statements.query(`declare ${cursor} no scroll cursor for ${query}`);
    return new SortedRows(statements, cursor, pageRows, keyOf);
  }

  /** The UUID below which all rows have been read. Null when all rows have been read. */
  get bound(): string | null {
    const last = this.#rows.at(-1);
    return this.#coming === null || last === undefined ? null : this.#keyOf(last);
  }

  /** Reads at least until the bound is above the first row that is left, or until the end. */
  async fill(): Promise<void> {
    while (this.#coming !== null && !this.#isFull()) {
      const page = await this.#coming;
      this.#rows = this.#rows.length === 0 ? page : this.#rows.concat(page);
      this.#coming = page.length < this.#pageRows ? null : this.#fetch();
    }
  }

  /** Removes and returns the rows whose UUID is below this one, or all with null. */
  take(below: string | null): readonly Row[] {
    const rows = this.#rows;
    let end = rows.length;
    if (below !== null) while (end > 0 && this.#keyOf(rows[end - 1]!) >= below) end -= 1;
    this.#rows = rows.slice(end);
    return end === rows.length ? rows : rows.slice(0, end);
  }

  #isFull(): boolean {
    const [first] = this.#rows;
    return this.#rows.length >= this.#pageRows && first !== undefined && this.#keyOf(first) !== this.bound;
  }

  #fetch(): Promise<Row[]> {
    const page = this.#statements.query<Row>(`fetch ${this.#pageRows} from ${this.#cursor}`);
    // The caller that awaits this page gets the failure. Until then the rejection must not count as unhandled.
    page.catch(() => undefined);
    return page;
  }
}
