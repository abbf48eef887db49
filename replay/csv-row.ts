import { TraceError } from "./trace.ts";

const INTEGER_MAX = 2_147_483_647;

/** One line of a CSV file, read column by column. Errors name the line, the column and the value. */
export class CsvRow {
  readonly #file: string;
  readonly #line: number;
  readonly #columns: readonly string[];
  readonly #cells: readonly string[];

  constructor(file: string, line: number, columns: readonly string[], cells: readonly string[]) {
    this.#file = file;
    this.#line = line;
    this.#columns = columns;
    this.#cells = cells;
  }

  text(column: string, pattern: RegExp, allowed: string): string {
    const value = this.#cell(column);
    if (!pattern.test(value)) this.refuse(column, allowed);
    return value;
  }

  integer(column: string, min: number, max = INTEGER_MAX): number {
    const value = this.#cell(column);
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max)
      this.refuse(column, `a whole number from ${min} to ${max}`);
    return number;
  }

  /** Whether the file's header has the column. */
  has(column: string): boolean {
    return this.#columns.includes(column);
  }

  refuse(column: string, allowed: string): never {
    throw new TraceError(
      this.#file,
      this.#line,
      `${column} is ${JSON.stringify(this.#cell(column))}; allowed: ${allowed}`,
    );
  }

  #cell(column: string): string {
    return this.#cells[this.#columns.indexOf(column)] ?? "";
  }
}

/**
 * The lines of a CSV file without quotes, whose header must be exactly one of `headers` (each a list of columns). A cell of a column that
 * the file's header lacks reads as empty. Throws a TraceError on the first line whose number of cells differs from the header's. Errors of
 * the caller's `CsvRow` calls are passed on.
 */
export function* readRows(
  file: string,
  content: string,
  ...headers: readonly (readonly string[])[]
): Generator<CsvRow> {
  const lines = content.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  const header = lines[0] ?? "";
  const columns = headers.find((one) => one.join(",") === header);
  if (columns === undefined) {
    const allowed = headers.map((one) => JSON.stringify(one.join(","))).join(" or ");
    throw new TraceError(file, 1, `the header is ${JSON.stringify(header)}; allowed: ${allowed}`);
  }
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue;
    const cells = line.split(",");
    if (cells.length !== columns.length) {
      throw new TraceError(
        file,
        index + 1,
        `${cells.length} columns; allowed: ${columns.length} (${columns.join(", ")})`,
      );
    }
    yield new CsvRow(file, index + 1, columns, cells);
  }
}
