const UUIDS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** The UUIDs that a text names, such as those of servers in the description of a violation. */
export const uuidsIn = (text: string): readonly string[] => text.match(UUIDS) ?? [];

/** What may have to wait for an operator's decision about a guest in quarantine. */
export class WaitingForOperator {
  readonly #undecided: ReadonlySet<string>;
  readonly #withMates: ReadonlySet<string>;

  constructor(undecided: ReadonlySet<string>, withMates: ReadonlySet<string>) {
    this.#undecided = undecided;
    this.#withMates = withMates;
  }

  /** Whether nothing of the server needs to end before the operator's decision. */
  holds(serverUuid: string): boolean {
    return this.#undecided.has(serverUuid);
  }

  /** Whether the text names a server that waits, or one of its group, which may wait for it. */
  concerns(text: string): boolean {
    return uuidsIn(text).some((uuid) => this.#withMates.has(uuid));
  }
}
