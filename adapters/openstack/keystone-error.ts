/** Why Keystone could not say whose a token is. Never holds a token or a password. */
export type KeystoneErrorCode =
  /** No answer, or one that says "later": another try can help. */
  | "keystone-unreachable"
  /** Keystone does not let this service in: its user, password or role is wrong. */
  | "keystone-refuses-service"
  /** An answer that Keystone does not give. */
  | "keystone-malformed"
  /** Too many tokens are being asked about. */
  | "keystone-overload";

export class KeystoneError extends Error {
  readonly code: KeystoneErrorCode;

  constructor(code: KeystoneErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "KeystoneError";
    this.code = code;
  }
}
