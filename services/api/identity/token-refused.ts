/** The token identifies no caller: it is missing or not valid (401), or it cannot be checked now (503). */
export class TokenRefused extends Error {
  readonly status: 401 | 503;
  /** Headers for the answer, which name the place to get a token or the time to ask again. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: 401 | 503, message: string, headers: Readonly<Record<string, string>>) {
    super(message);
    this.name = "TokenRefused";
    this.status = status;
    this.headers = headers;
  }
}
