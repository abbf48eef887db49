import type { ServerPut } from "../ledger/row-change.ts";
import { isSettled } from "../tasks/group-rule.ts";
import type { ServerOnHost } from "./host-facts.ts";
import type { ServerKind } from "./interned-kinds.ts";
import type { LiveHost } from "./live-host.ts";

/** Task states that move or copy much data, as Nova counts them. A server in BUILD counts, too. */
const BUSY_STATES: ReadonlySet<string> = new Set([
  "resize_prep",
  "resize_migrating",
  "migrating",
  "rebuilding",
  "image_snapshot",
  "image_backup",
  "shelving",
  "unshelving",
  "rescuing",
]);

/** A server that shares the object of its kind with many others. */
export class LiveServer implements ServerOnHost {
  readonly uuid: string;
  readonly host: LiveHost;
  readonly specRevision: number | null;
  kind: ServerKind;
  busy: boolean;
  /** True when nothing is about to move it to another host. */
  settled: boolean;

  constructor(host: LiveHost, change: ServerPut, kind: ServerKind) {
    this.host = host;
    this.uuid = change.uuid;
    this.specRevision = change.specRevision;
    this.kind = kind;
    this.busy = isBusy(change);
    this.settled = isSettled(change);
  }

  get projectId(): string {
    return this.kind.projectId;
  }
  get flavorId(): string {
    return this.kind.flavorId;
  }
  get imageRef(): string {
    return this.kind.imageRef;
  }
  get imageProperties(): Readonly<Record<string, string>> {
    return this.kind.imageProperties;
  }
  get group(): string {
    return this.kind.group;
  }
}

/** Whether the server counts as an I/O operation of its host. */
export function isBusy({ status, taskState }: ServerPut): boolean {
  return status === "BUILD" || (taskState !== null && BUSY_STATES.has(taskState));
}
