import { SettingsError } from "../../../runtime/settings.ts";

export type EmbeddedErrorCode =
  /** node_modules has no Postgres for this platform. */
  | "no-binaries"
  /** The process runs as root, and there is no other user to run Postgres under. */
  | "no-user"
  /** Another process serves this data directory. */
  | "in-use"
  /** Postgres did not start. The message contains the end of its log. */
  | "cannot-start"
  /** The data directory was made by another major version of Postgres. */
  | "other-version";

/**
 * A data directory that is in use must be changed by the user, so the error becomes a bad setting. Every other error is returned as it is.
 */
export function settingsErrorIfInUse(error: unknown): unknown {
  return error instanceof EmbeddedError && error.code === "in-use" ? new SettingsError(error.message) : error;
}

/** Every failure of the embedded Postgres. */
export class EmbeddedError extends Error {
  readonly code: EmbeddedErrorCode;

  constructor(code: EmbeddedErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EmbeddedError";
    this.code = code;
  }
}
