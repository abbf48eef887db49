import { AssertionError } from "../../../core/assert.ts";
import { StoreError, type StoreErrorCode } from "../../../core/stores/store-error.ts";
import { QueueFullError } from "../../../runtime/batcher.ts";
import { isOfCommit } from "./transaction.ts";

/** Errors after which the same call may be repeated, by SQLSTATE, SQLSTATE class (two characters) or system error. All others are bugs. */
const UNAVAILABLE: ReadonlySet<string> = new Set([
  "08", // connection exceptions
  "40", // transaction rollback: a deadlock or a conflict that outlived its retries
  "53", // insufficient resources: disk, memory, connections
  "57", // operator intervention: shutdown, crash, cannot_connect_now, query_canceled
  "58", // system errors: I/O
  "55P03", // lock_not_available
  "25P03", // idle_in_transaction_session_timeout
  "25006", // read_only_sql_transaction: a standby that is being promoted
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

/** The driver's messages about a lost connection, which have no code. */
const CONNECTION_LOST = /connection terminated|timeout|not queryable|client was closed|connection error/i;

export function storeErrorCodeOf(error: unknown): StoreErrorCode {
  if (!(error instanceof Error)) return "bug";
  if (error instanceof QueueFullError) return "unavailable";
  const code = (error as { readonly code?: unknown }).code;
  if (typeof code !== "string") return CONNECTION_LOST.test(error.message) ? "unavailable" : "bug";
  return UNAVAILABLE.has(code) || UNAVAILABLE.has(code.slice(0, 2)) ? "unavailable" : "bug";
}

/** Whether the database could not be asked, so that the call may be repeated later. Takes a store's error or one of the driver's. */
export function isUnavailable(error: unknown): boolean {
  return (error instanceof StoreError ? error.code : storeErrorCodeOf(error)) === "unavailable";
}

const DISK_FULL = "53100";

/**
 * Why the database refused to write, if its disk is full and it is certain that it wrote nothing. Null for every other error, also for one during the commit
 * of a transaction: other refusals, such as that no connection is left or that a standby is being promoted, pass within moments, so that the call is worth repeating. Takes a store's
 * error or one of the driver's.
 */
export function refusedWrite(error: unknown): string | null {
  const cause = error instanceof StoreError ? error.cause : error;
  if (!(cause instanceof Error) || isOfCommit(cause)) return null;
  return (cause as { readonly code?: unknown }).code === DISK_FULL ? cause.message : null;
}

/** Runs a store's work. Throws a `StoreError` for any failure except assertions, which pass through. */
export async function runStored<Result>(operation: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AssertionError || error instanceof StoreError) throw error;
    throw new StoreError(storeErrorCodeOf(error), operation, error);
  }
}
