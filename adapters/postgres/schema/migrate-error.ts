export type MigrateErrorCode =
  /** The database has migrations that this version of Berth does not know, and it was to be changed, or they break programs that do not. */
  | "too-new"
  /** The database lacks migrations that this version's baseline stands for: an older version has to apply them. */
  | "too-old"
  /** It is a database of the other kind. */
  | "other-kind"
  /** A migration was changed after this database had it. */
  | "changed"
  /** The server's version of PostgreSQL is older than Berth works with. */
  | "server-too-old"
  /** Others held a lock that a migration needs, for longer than it tries. */
  | "blocked";

/** Why a database cannot be used by this version; nothing was changed. */
export class MigrateError extends Error {
  readonly code: MigrateErrorCode;

  constructor(code: MigrateErrorCode, message: string) {
    super(message);
    this.name = "MigrateError";
    this.code = code;
  }
}
