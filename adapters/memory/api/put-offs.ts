/** The columns that `open_requests` has beside a request's state. */
export class PutOffs {
  readonly #rows = new Map<
    string,
    { readonly acceptedAtMs: number; readonly retryAtMs: number | null; readonly times: number }
  >();

  begin(uuid: string, nowMs: number): void {
    this.#rows.set(uuid, { acceptedAtMs: nowMs, retryAtMs: null, times: 0 });
  }

  of(uuid: string) {
    return this.#rows.get(uuid) ?? { acceptedAtMs: 0, retryAtMs: null, times: 0 };
  }

  putOff(uuid: string, retryAtMs: number): void {
    this.#rows.set(uuid, { ...this.of(uuid), retryAtMs, times: this.of(uuid).times + 1 });
  }

  handOut(uuid: string, retryAtMs: number): void {
    this.#rows.set(uuid, { ...this.of(uuid), retryAtMs });
  }
}
