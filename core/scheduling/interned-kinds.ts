/** The properties that many servers have in common. */
export interface ServerKind {
  readonly projectId: string;
  readonly flavorId: string;
  readonly imageRef: string;
  readonly imageProperties: Readonly<Record<string, string>>;
  readonly group: string;
}

/** Maximum number of shared kinds. Beyond it the map is cleared, while known servers keep their kinds. */
const KINDS_MAX = 100_000;

/** Keeps one object for each kind of server, so that a million servers take the memory of some thousand kinds. */
export class InternedKinds {
  readonly #kinds = new Map<string, ServerKind>();

  of(kind: ServerKind): ServerKind {
    const { projectId, flavorId, imageRef, imageProperties, group } = kind;
    let key = `${projectId}\n${flavorId}\n${imageRef}\n${group}`;
    for (const name in imageProperties) key += `\n${name}=${imageProperties[name]}`;
    const known = this.#kinds.get(key);
    if (known) return known;
    if (this.#kinds.size >= KINDS_MAX) this.#kinds.clear();
    this.#kinds.set(key, kind);
    return kind;
  }
}
