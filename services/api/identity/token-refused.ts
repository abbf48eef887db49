/** Nobody is known by the token: it is missing or not valid (401), or it cannot be looked at now (503). */
export class TokenRefused extends Error {
  readonly status: 401 | 503;
  /** To go with the answer: where to get a token, or when to ask again. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: 401 | 503, message: string, headers: Readonly<Record<string, string>>) {
    super(message);
    this.name = "TokenRefused";
    this.status = status;
    this.headers = headers;
  }
}
