import type { RowChange, ServerPut } from "../../../core/ledger/row-change.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { TrackedRows } from "./tracked-rows.ts";

/** The part of a server's row that followers see. */
interface TrackedServer {
  readonly uuid: string;
  readonly host: string | null;
  readonly status: string;
  readonly taskState: string | null;
  readonly spec: ServerSpec;
}

type Shown = Pick<ServerPut, "host" | "status" | "taskState" | "specRevision">;

/** Rows of `servers`. */
export class TrackedServers<Row extends TrackedServer> extends TrackedRows<Row, Shown> {
  readonly #revisions = new WeakMap<ServerSpec, number>();
  #revision = 0;

  protected override shownOf({ host, status, taskState, spec }: Row): Shown {
    let specRevision = this.#revisions.get(spec);
    if (specRevision === undefined) {
      this.#revision += 1;
      specRevision = this.#revision;
      this.#revisions.set(spec, specRevision);
    }
    return { host, status, taskState, specRevision };
  }

  protected override isSame(one: Shown, other: Shown): boolean {
    return (
      one.host === other.host &&
      one.status === other.status &&
      one.taskState === other.taskState &&
      one.specRevision === other.specRevision
    );
  }

  protected override changeOf({ uuid, spec }: Row, shown: Shown): RowChange {
    return { kind: "server-put", uuid, ...shown, spec: () => spec };
  }

  protected override removalOf(uuid: string): RowChange {
    return { kind: "server-removed", uuid };
  }
}
