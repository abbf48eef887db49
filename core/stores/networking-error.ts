/** How a call to the Networking service failed. The codes are stable. */
export type NetworkingErrorCode =
  /** No answer, or one that says "later": a change may have been made. */
  | "unreachable"
  /** The service does not let this service or the caller do this. */
  | "refused"
  /** An answer that its API does not have, or one that this service does not understand. */
  | "bad-answer";

/** The Networking service could not do its work. It is never an expected outcome. Holds no token. */
export class NetworkingError extends Error {
  override readonly name = "NetworkingError";
  readonly code: NetworkingErrorCode;

  constructor(code: NetworkingErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
