import type { ClientBase } from "pg";

/** Runs statements on one connection, one after the other, for several readers that do not know of each other. */
export class StatementQueue {
  readonly #client: ClientBase;
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: ClientBase) {
    this.#client = client;
  }

  /** Resolves with the statement's rows. A statement that fails does not keep the next one from running. */
  query<Row>(text: string): Promise<Row[]> {
    const rows = this.#last.then(async () => (await this.#client.query(text)).rows as Row[]);
    this.#last = rows.catch(() => undefined);
    return rows;
  }
}
