/** Rows that did not fit into the ledger: a description of the kind, their number, and some of them by name. */
export interface RejectedRow {
  readonly what: string;
  readonly count: number;
  readonly examples: readonly string[];
}

const EXAMPLES_MAX = 10;

/** Counts rows that do not fit, and remembers the first ones of each kind. */
export class RejectedRows {
  readonly #byKind: Map<string, { count: number; readonly examples: string[] }>;

  /** `known` are those that were found before an interruption. */
  constructor(known: readonly RejectedRow[] = []) {
    this.#byKind = new Map(known.map(({ what, count, examples }) => [what, { count, examples: [...examples] }]));
  }

  add(what: string, example: string, count = 1): void {
    const kind = this.#byKind.get(what) ?? { count: 0, examples: [] };
    kind.count += count;
    if (kind.examples.length < EXAMPLES_MAX) kind.examples.push(example);
    this.#byKind.set(what, kind);
  }

  list(): readonly RejectedRow[] {
    return [...this.#byKind].map(([what, { count, examples }]) => ({ what, count, examples }));
  }
}
