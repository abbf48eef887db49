/** How a call to the Block Storage service failed. The codes are stable. */
export type BlockStorageErrorCode =
  /** No answer, or one that says "later": a change may have been made. */
  | "unreachable"
  /** The service does not let this service do this. */
  | "refused"
  /** An answer that its API does not have, or one that this service does not understand. */
  | "bad-answer";

/** The Block Storage service could not do its work. It is never an expected outcome. Holds no token. */
export class BlockStorageError extends Error {
  override readonly name = "BlockStorageError";
  readonly code: BlockStorageErrorCode;

  constructor(code: BlockStorageErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
