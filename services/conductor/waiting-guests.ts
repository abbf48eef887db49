/** Guests that wait for something, by host. */
export class WaitingGuests {
  readonly #byHost = new Map<string, Set<string>>();

  get count(): number {
    let count = 0;
    for (const attemptIds of this.#byHost.values()) count += attemptIds.size;
    return count;
  }

  add({ host, attemptId }: { readonly host: string; readonly attemptId: string }): void {
    const ofHost = this.#byHost.get(host);
    if (ofHost === undefined) this.#byHost.set(host, new Set([attemptId]));
    else ofHost.add(attemptId);
  }

  /** Removes the guest. Returns whether it was waiting. */
  delete({ host, attemptId }: { readonly host: string; readonly attemptId: string }): boolean {
    return this.#byHost.get(host)?.has(attemptId) === true && this.#keepWhere(host, (one) => one !== attemptId);
  }

  /** Removes all waiting guests of the host except these ones. Returns whether any was removed. */
  keepOnly(host: string, attemptIds: readonly string[]): boolean {
    if (!this.#byHost.has(host)) return false;
    const there = new Set(attemptIds);
    return this.#keepWhere(host, (one) => there.has(one));
  }

  #keepWhere(host: string, isKept: (attemptId: string) => boolean): boolean {
    const before = this.#byHost.get(host) ?? new Set();
    const kept = new Set([...before].filter(isKept));
    if (kept.size === 0) this.#byHost.delete(host);
    else this.#byHost.set(host, kept);
    return kept.size < before.size;
  }
}
