export type ImportErrorCode =
  /** The ledger has providers that no import has written. */
  | "ledger-not-empty"
  /** The ledger has hosts or servers: it is in use. */
  | "ledger-in-use"
  /** An unfinished import was from another database. */
  | "other-source"
  /** The source was changed after the import began. */
  | "source-changed"
  /** Another import into this ledger is running. */
  | "import-running";

/** Why an import cannot continue. Nothing was changed. */
export class ImportError extends Error {
  readonly code: ImportErrorCode;

  constructor(code: ImportErrorCode, message: string) {
    super(message);
    this.name = "ImportError";
    this.code = code;
  }
}
