import type { ConsoleToken, ConsoleTokenStore } from "../../../core/stores/api/console-token-store.ts";

/** The in-process twin of the table of console tokens. */
export class MemoryConsoleTokenStore implements ConsoleTokenStore {
  readonly #tokens = new Map<string, ConsoleToken>();

  async putToken(token: ConsoleToken, nowMs: number): Promise<void> {
    for (const { tokenSha256, expiresAtMs } of this.#tokens.values())
      if (expiresAtMs <= nowMs) this.#tokens.delete(tokenSha256);
    this.#tokens.set(token.tokenSha256, token);
  }

  async token(tokenSha256: string, nowMs: number): Promise<ConsoleToken | null> {
    const found = this.#tokens.get(tokenSha256);
    return found !== undefined && found.expiresAtMs > nowMs ? found : null;
  }

  async takeToken(tokenSha256: string, nowMs: number): Promise<ConsoleToken | null> {
    const found = await this.token(tokenSha256, nowMs);
    // Another caller may have taken it meanwhile.
    return found !== null && this.#tokens.delete(tokenSha256) ? found : null;
  }
}
