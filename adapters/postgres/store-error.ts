import { AssertionError } from "../../core/assert.ts";

/**
 * `unavailable`: the database could not be asked, or its answer was lost: what was asked may or may not have happened, and
 * may be asked again. `bug`: it refused what Berth should never ask.
 */
export type StoreErrorCode = "unavailable" | "bug";

/** A store could not do its work. Thrown by the Postgres bodies of the stores; never an expected outcome. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;
  /** The store's function that failed. */
  readonly operation: string;

  constructor(code: StoreErrorCode, operation: string, cause: unknown) {
    super(`${operation}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "StoreError";
    this.code = code;
    this.operation = operation;
  }
}

/** What to do about an error: run the transaction anew (it was rolled back for certain), tell the caller, or tell the programmer. */
export type Verdict = "again" | StoreErrorCode;

/** By SQLSTATE or system error; by SQLSTATE class (two characters) where the whole class is alike. */
const VERDICTS: Readonly<Record<string, Verdict>> = {
  "40001": "again", // serialization_failure
  "40P01": "again", // deadlock_detected
  "08": "unavailable", // connection exceptions
  "53": "unavailable", // insufficient resources: disk, memory, connections
  "55P03": "unavailable", // lock_not_available
  "57": "unavailable", // operator intervention: shutdown, crash, cannot_connect_now, query_canceled
  "58": "unavailable", // system errors: I/O
  "25P03": "unavailable", // idle_in_transaction_session_timeout
  "25006": "unavailable", // read_only_sql_transaction: a standby that is being promoted
  ECONNREFUSED: "unavailable",
  ECONNRESET: "unavailable",
  EPIPE: "unavailable",
  ETIMEDOUT: "unavailable",
  ENOTFOUND: "unavailable",
  EAI_AGAIN: "unavailable",
  EHOSTUNREACH: "unavailable",
  ENETUNREACH: "unavailable",
};

/** What the driver says of a connection, without a code. */
const CONNECTION_LOST = /connection terminated|timeout|not queryable|client was closed|connection error/i;

export function verdictOf(error: unknown): Verdict {
  if (!(error instanceof Error) || error instanceof AssertionError) return "bug";
  const code = (error as { readonly code?: unknown }).code;
  if (typeof code === "string") return VERDICTS[code] ?? VERDICTS[code.slice(0, 2)] ?? "bug";
  return CONNECTION_LOST.test(error.message) ? "unavailable" : "bug";
}

/** Most times that a transaction is run when Postgres keeps choosing it as the victim. */
const TRIES_MAX = 5;

/**
 * Runs one transaction, anew when it was the victim of a deadlock. Throws a `StoreError` for what else goes wrong;
 * assertions pass through. `work` may have no effect but on the database.
 */
export async function runStored<Result>(operation: string, work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof AssertionError || error instanceof StoreError) throw error;
      const verdict = verdictOf(error);
      if (verdict === "again" && tries < TRIES_MAX) continue;
      throw new StoreError(verdict === "again" ? "unavailable" : verdict, operation, error);
    }
  }
}
