import type { RowChange, ServerPut } from "../../core/ledger/row-change.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";

/** What followers are told of a server's row. */
interface TrackedRow {
  readonly uuid: string;
  readonly host: string | null;
  readonly status: string;
  readonly taskState: string | null;
  readonly spec: ServerSpec;
}

type Shown = Pick<ServerPut, "host" | "status" | "taskState" | "specRevision">;

/**
 * Rows of `servers` by uuid, which knows what followers were told of each: a step gets the rows that it changes from here, so only
 * those that it got are compared when it is over.
 */
export class TrackedServers<Row extends TrackedRow> extends Map<string, Row> {
  readonly #got = new Set<string>();
  readonly #told = new Map<string, Shown>();
  readonly #revisions = new WeakMap<ServerSpec, number>();
  #revision = 0;

  override get(uuid: string): Row | undefined {
    this.#got.add(uuid);
    return super.get(uuid);
  }

  override set(uuid: string, row: Row): this {
    this.#got.add(uuid);
    return super.set(uuid, row);
  }

  /** What changed of the servers that were got since the last call, as a follower sees it. */
  takeChanges(): RowChange[] {
    const changes: RowChange[] = [];
    for (const uuid of this.#got) {
      const row = super.get(uuid);
      const told = this.#told.get(uuid);
      if (row === undefined) {
        if (told !== undefined) changes.push({ kind: "server-removed", uuid });
        this.#told.delete(uuid);
        continue;
      }
      const now = this.#shown(row);
      if (told !== undefined && isSame(told, now)) continue;
      this.#told.set(uuid, now);
      changes.push(this.#change(row, now));
    }
    this.#got.clear();
    return changes;
  }

  /** Every server as a follower sees it. */
  rows(): RowChange[] {
    return Array.from(this.values(), (row) => this.#change(row, this.#shown(row)));
  }

  #shown({ host, status, taskState, spec }: TrackedRow): Shown {
    let specRevision = this.#revisions.get(spec);
    if (specRevision === undefined) {
      this.#revision += 1;
      specRevision = this.#revision;
      this.#revisions.set(spec, specRevision);
    }
    return { host, status, taskState, specRevision };
  }

  #change({ uuid, spec }: TrackedRow, shown: Shown): ServerPut {
    return { kind: "server-put", uuid, ...shown, spec: () => spec };
  }
}

function isSame(one: Shown, other: Shown): boolean {
  return (
    one.host === other.host &&
    one.status === other.status &&
    one.taskState === other.taskState &&
    one.specRevision === other.specRevision
  );
}
