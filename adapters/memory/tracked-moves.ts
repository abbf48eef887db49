import type { MovePut } from "../../core/ledger/row-change.ts";

type TrackedRow = Omit<MovePut, "kind">;

/** Rows of `migrations` by uuid, which knows what followers were told of each, as `TrackedServers` does of servers. */
export class TrackedMoves<Row extends TrackedRow> extends Map<string, Row> {
  readonly #got = new Set<string>();
  readonly #told = new Map<string, MovePut>();

  override get(uuid: string): Row | undefined {
    this.#got.add(uuid);
    return super.get(uuid);
  }

  override set(uuid: string, row: Row): this {
    this.#got.add(uuid);
    return super.set(uuid, row);
  }

  /** What changed of the moves that were got since the last call, as a follower sees it. */
  takeChanges(): MovePut[] {
    const changes: MovePut[] = [];
    for (const uuid of this.#got) {
      const row = super.get(uuid);
      if (row === undefined) continue;
      const now = shown(row);
      const told = this.#told.get(uuid);
      if (told !== undefined && told.destHost === now.destHost && told.ended === now.ended) continue;
      this.#told.set(uuid, now);
      changes.push(now);
    }
    this.#got.clear();
    return changes;
  }

  /** Every move that has not ended, as a follower sees it. */
  rows(): MovePut[] {
    return Array.from(this.values(), shown).filter(({ ended }) => !ended);
  }
}

function shown({ uuid, serverUuid, sourceHost, destHost, ended }: TrackedRow): MovePut {
  return { kind: "move-put", uuid, serverUuid, sourceHost, destHost, ended };
}
