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
