/**
 * - `unavailable`: LXD does not answer.
 * - `not-found`: LXD has no such object.
 * - `refused`: LXD refuses the request as it is now, such as for a guest that is in another state.
 * - `image`: an image cannot be used. `isFinal` images cannot be used on any host.
 */
export type LxdErrorCode = "unavailable" | "not-found" | "refused" | "image";

export class LxdError extends Error {
  override readonly name = "LxdError";
  readonly code: LxdErrorCode;
  /** Whether every other host would fail as well. */
  readonly isFinal: boolean;

  constructor(
    code: LxdErrorCode,
    message: string,
    { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.isFinal = isFinal;
  }
}
