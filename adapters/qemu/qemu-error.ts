/**
 * - `unavailable`: QEMU or one of its tools is not installed, or this host cannot use it in this way.
 * - `not-started`: QEMU ended before it answered, or did not answer in time.
 * - `image`: an image cannot be used. `isFinal` images cannot be used on any host.
 * - `storage`: a disk or a stored file cannot be used.
 * - `state`: the guest is not in the state that the call needs.
 */
export type QemuErrorCode = "unavailable" | "not-started" | "image" | "storage" | "state";

export class QemuError extends Error {
  override readonly name = "QemuError";
  readonly code: QemuErrorCode;
  /** Whether every other host would fail as well. */
  readonly isFinal: boolean;

  constructor(
    code: QemuErrorCode,
    message: string,
    { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.isFinal = isFinal;
  }
}
