/**
 * `unavailable`: the database could not be asked, or its answer was lost. The request may or may not have been carried out, and may be
 * repeated. `bug`: the database refused something that Berth should never ask for.
 */
export type StoreErrorCode = "unavailable" | "bug";

/** A store could not do its work. The Postgres implementations of the stores throw it. It is never an expected outcome. */
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
