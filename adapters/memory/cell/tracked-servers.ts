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

  /** An update has no spec, as in Postgres (`announce_servers`), unless the spec has changed or the server was on no host. */
  protected override changeOf({ uuid, spec }: Row, shown: Shown, told: Shown | undefined): RowChange {
    const put = { kind: "server-put", uuid, ...shown } as const;
    if (told === undefined || told.host === null || told.specRevision !== shown.specRevision)
      return { ...put, spec: () => spec };
    const unknown = (): ServerSpec => {
      throw new Error(`the stream does not describe server ${uuid}`);
    };
    return { ...put, specRevision: null, spec: unknown };
  }

  protected override removalOf(uuid: string): RowChange {
    return { kind: "server-removed", uuid };
  }
}
