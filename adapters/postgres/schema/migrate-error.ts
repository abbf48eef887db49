export type MigrateErrorCode =
  /**
   * The database has migrations that this version of Berth does not know, and either it would have to be changed, or they break programs
   * that do not know them.
   */
  | "too-new"
  /** The database lacks migrations that this version's baseline replaces. An older version has to apply them first. */
  | "too-old"
  /** The database is of the other kind. */
  | "other-kind"
  /** The database belongs to another cell. */
  | "other-cell"
  /** A migration's file was changed after it was applied to this database. */
  | "changed"
  /** The server's PostgreSQL version is older than Berth supports. */
  | "server-too-old"
  /** Other sessions held a lock that a migration needs, through all tries. */
  | "blocked";

/** Why this version cannot use a database. Nothing was changed. */
export class MigrateError extends Error {
  readonly code: MigrateErrorCode;

  constructor(code: MigrateErrorCode, message: string) {
    super(message);
    this.name = "MigrateError";
    this.code = code;
  }
}
