import type { ClientBase } from "pg";
import type { NameIds } from "./copy-names.ts";
import type { RejectedRows } from "./rejected-rows.ts";
import type { Source } from "./source.ts";

export interface CopyContext {
  readonly source: Source;
  /** A client in a transaction that ends with the batch. */
  readonly ledger: ClientBase;
  readonly names: NameIds;
  readonly rejected: RejectedRows;
}

export interface CopiedBatch {
  /** The last id of the batch, or null when there is nothing after `afterId`. */
  readonly lastId: number | null;
  /** Number of rows read, for the progress. */
  readonly rows: number;
}

/** Copies one table, or one part of it, in batches by ascending ids. A batch can be copied again at any time. */
export interface CopyStep {
  readonly what: string;
  copy(context: CopyContext, afterId: number, rowsMax: number): Promise<CopiedBatch>;
}

/** The batch of these rows, of which the last one has the id `key`. */
export function batchOf(rows: readonly Readonly<Record<string, unknown>>[], key = "id"): CopiedBatch {
  const last = rows.at(-1);
  return { lastId: last === undefined ? null : Number(last[key]), rows: rows.length };
}

/** A UUID in the ledger's form, or null when the text is not one. Upstream accepts UUIDs with and without dashes, in either case. */
export function ledgerUuid(text: string): string | null {
  const digits = text.trim().toLowerCase().replaceAll("-", "");
  if (!/^[0-9a-f]{32}$/.test(digits)) return null;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
