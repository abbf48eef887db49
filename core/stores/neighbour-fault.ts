/** How a call to another service of the cloud failed. The codes are stable. */
export type NeighbourFaultCode =
  /** No answer, or one that says "later": a change may have been made. */
  | "unreachable"
  /** The service does not let this service or the caller do this. */
  | "refused"
  /** An answer that its API does not have, or one that this service does not understand. */
  | "bad-answer";

/** Another service of the cloud could not do its work. It is never an expected outcome. Holds no token. */
export class NeighbourFault extends Error {
  override readonly name: string = "NeighbourFault";
  readonly code: NeighbourFaultCode;

  constructor(code: NeighbourFaultCode, message: string) {
    super(message);
    this.code = code;
  }
}
