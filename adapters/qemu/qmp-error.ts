/**
 * - `refused`: QEMU answered the command with an error.
 * - `lost`: the connection ended, or nobody listens there. Whether the last command was carried out is unknown.
 * - `silent`: QEMU did not answer in time, or a connection to it could not be opened. It may still run.
 * - `malformed`: QEMU sent something that is not QMP. The connection is closed.
 */
export type QmpErrorCode = "refused" | "lost" | "silent" | "malformed";

export class QmpError extends Error {
  override readonly name = "QmpError";
  readonly code: QmpErrorCode;

  constructor(code: QmpErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
