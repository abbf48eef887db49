import type { ServerPut } from "../../../core/ledger/row-change.ts";
import type { RequestRecord } from "../../../core/stores/api/api-store.ts";
import type { Attempt, Server } from "../../../core/tasks/server.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { LiveAttempt, LiveCellCounts, LiveCounts, LivePath, PathState } from "./live-picture.ts";

/** Maximum number of paths that are shown. */
const PATHS_MAX = 300;
/** Maximum number of attempts that are shown for one path. The newest are shown. */
const ATTEMPTS_MAX = 20;
/** Reasons come from drivers, and may be long. */
const REASON_LENGTH_MAX = 300;

interface BookedPath {
  path: LivePath;
  /** Whether its attempts may have changed since they were read. */
  stale: boolean;
}

/**
 * The ways of the newest builds and moves, at most PATHS_MAX. When there are more, those that ended well on their first host are dropped
 * first, then others that ended, then the oldest. Dropped ones are still counted.
 *
 * A path begins with an accepted request, or with a server's row that a view applies, and ends with such a row. Rows may come twice. The
 * attempts are read from the cell afterwards, for the paths that `stale` names.
 */
export class PathBook {
  readonly #paths = new Map<string, BookedPath>();
  readonly #changed = new Set<string>();
  #gone: string[] = [];
  readonly #counts = { placed: 0, hops: 0, active: 0, failed: 0, deleted: 0 };
  readonly #sinceMs: number;
  readonly #byCell = new Map<string, { hops: number; active: number; failed: number }>();

  /** Counts what happens from `sinceMs` on, in milliseconds since the epoch. */
  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs;
  }

  get counts(): LiveCounts {
    return { ...this.#counts };
  }

  countsOf(cell: string): LiveCellCounts {
    const { active, hops, failed } = this.#byCell.get(cell) ?? { active: 0, hops: 0, failed: 0 };
    return [active, hops, failed];
  }

  paths(): readonly LivePath[] {
    return Array.from(this.#paths.values(), ({ path }) => path);
  }

  /** Requests that were accepted and have no host yet. */
  waiting(): readonly LivePath[] {
    return this.paths().filter(({ state }) => state === "accepted");
  }

  /** Takes requests as the API database has them, in any order. If a request has reached a cell, the cell's rows contain more. */
  requestsSeen(records: readonly RequestRecord[]): void {
    for (const { serverUuid: id, spec, state, fault, cell, createdAtMs, updatedAtMs } of records) {
      const known = this.#paths.get(id)?.path;
      const base = known ?? startOf(id, labelIn(spec), "build", createdAtMs);
      if (state === "failed" && base.state !== "error") {
        // A request may have ended before it was first seen here.
        if (known !== undefined || updatedAtMs >= this.#sinceMs) this.#counts.failed += 1;
        this.#put({ ...base, state: "error", fault: clip(fault), endedAt: updatedAtMs }, cell !== null);
      } else if (state === "accepted" && known === undefined) this.#put(base, false);
      else if (state === "dispatched" && cell !== null && known?.cell == null)
        this.#put({ ...base, cell, state: "building" }, true);
      else if (known?.kind === "build" && known.at !== createdAtMs) this.#put({ ...known, at: createdAtMs }, false);
      else if (state === "cancelled" && known?.state === "accepted")
        this.#put({ ...known, state: "deleted", endedAt: updatedAtMs }, false);
    }
  }

  /** Takes a server's row from the cell's view. `before` is its previous row. */
  serverPut(
    cell: string,
    change: ServerPut,
    before: { readonly host: string; readonly busy: boolean } | null,
    nowMs: number,
  ): void {
    const { uuid, status, taskState, host } = change;
    const known = this.#paths.get(uuid)?.path;
    const state = stateOf(change);
    this.#count(cell, state, host, before);
    if (state === "building") {
      const kind = taskState === null || status === "BUILD" ? "build" : taskState;
      const isSame = known !== undefined && (known.kind === kind || known.endedAt === null);
      const path = isSame ? known : startOf(uuid, known ?? labelOf(change), kind, nowMs);
      this.#put({ ...path, cell, state, endedAt: null, fault: null }, true);
    } else if (known !== undefined && (known.endedAt === null || known.state !== state)) {
      if (known.endedAt !== null && state === "active") return;
      this.#put({ ...known, cell, state, endedAt: nowMs }, state !== "deleted");
    }
  }

  serverRemoved(uuid: string, nowMs: number): void {
    const known = this.#paths.get(uuid)?.path;
    if (known !== undefined && known.endedAt === null) this.#put({ ...known, state: "deleted", endedAt: nowMs }, false);
  }

  /** Ids of at most `limit` paths of the cell whose attempts have to be read. They count as read from now on. */
  takeStale(cell: string, limit: number): readonly string[] {
    const found: string[] = [];
    for (const booked of this.#paths.values()) {
      if (!booked.stale || booked.path.cell !== cell) continue;
      if (found.length === limit) break;
      booked.stale = false;
      found.push(booked.path.id);
    }
    return found;
  }

  /** Says that these paths have to be read again, since the cell did not answer. */
  leaveStale(ids: readonly string[]): void {
    for (const id of ids) {
      const booked = this.#paths.get(id);
      if (booked !== undefined) booked.stale = true;
    }
  }

  /** Takes servers and their attempts as their cell has them, and shows the attempts of each one's newest task. */
  read(cell: string, servers: readonly Server[], attempts: readonly Attempt[]): void {
    const byServer = Map.groupBy(attempts, (attempt) => attempt.serverUuid);
    for (const server of servers) {
      const known = this.#paths.get(server.uuid)?.path;
      if (known === undefined) continue;
      const state = stateOf(server);
      const shown = shownOf(byServer.get(server.uuid) ?? []);
      const lastAt = shown.at(-1)?.endedAt ?? null;
      const endedAt =
        state === "building" ? null : state === "deleted" ? server.deletedAtMs : (lastAt ?? known.endedAt);
      const fault = state === "error" ? clip(server.fault?.message ?? shown.at(-1)?.reason ?? null) : null;
      const label = known.name === "" ? labelIn(server.spec) : {};
      const path = { ...known, ...label, cell, state, attempts: shown, endedAt: endedAt ?? server.updatedAtMs, fault };
      this.#put(state === "building" ? { ...path, endedAt: null } : path, false);
    }
  }

  /** Returns what has changed since the last call. */
  take(): { readonly paths: readonly LivePath[]; readonly gone: readonly string[] } {
    const paths = [...this.#changed].map((id) => this.#paths.get(id)?.path).filter((path) => path !== undefined);
    const gone = this.#gone;
    this.#changed.clear();
    this.#gone = [];
    return { paths, gone };
  }

  #count(
    cell: string,
    state: PathState,
    host: string | null,
    before: { readonly host: string; readonly busy: boolean } | null,
  ): void {
    if (state === "building" && before === null) this.#counts.placed += 1;
    else if (state === "building" && before?.busy && host !== before.host) this.#countIn(cell, "hops");
    else if (state === "active" && before?.busy) this.#countIn(cell, "active");
    else if (state === "error" && before !== null && host === null) this.#countIn(cell, "failed");
    else if (state === "deleted" && before !== null) this.#counts.deleted += 1;
  }

  #countIn(cell: string, what: "hops" | "active" | "failed"): void {
    const own = this.#byCell.get(cell) ?? { hops: 0, active: 0, failed: 0 };
    own[what] += 1;
    this.#counts[what] += 1;
    this.#byCell.set(cell, own);
  }

  #put(path: LivePath, mayBeStale: boolean): void {
    const before = this.#paths.get(path.id);
    this.#paths.set(path.id, { path, stale: mayBeStale || (before?.stale ?? false) });
    this.#changed.add(path.id);
    if (this.#paths.size > PATHS_MAX) this.#dropOne();
  }

  #dropOne(): void {
    const all = this.paths();
    const ended = all.filter(({ endedAt }) => endedAt !== null);
    const dropped = ended.find(({ attempts, state }) => state !== "error" && attempts.length < 2) ?? ended[0] ?? all[0];
    if (dropped === undefined) return;
    this.#paths.delete(dropped.id);
    this.#changed.delete(dropped.id);
    this.#gone.push(dropped.id);
  }
}

type Label = Pick<LivePath, "name" | "project">;

/** The label of a server that no path knows. A row without the spec is labelled when its server is read from the cell. */
function labelOf({ specRevision, spec }: ServerPut): Label {
  return specRevision === null ? { name: "", project: "" } : labelIn(spec());
}

const labelIn = ({ name, projectId }: ServerSpec): Label => ({ name, project: projectId });

function startOf(id: string, { name, project }: Label, kind: string, at: number): LivePath {
  const none = { cell: null, endedAt: null, fault: null, attempts: [] };
  return { ...none, id, name, project, kind, state: "accepted", at };
}

function shownOf(attempts: readonly Attempt[]): readonly LiveAttempt[] {
  const newest = attempts.at(-1)?.taskId;
  return attempts
    .filter(({ taskId }) => taskId === newest)
    .slice(-ATTEMPTS_MAX)
    .map(({ host, startedAtMs, endedAtMs, result, reason }) => ({
      ...{ host, at: startedAtMs, endedAt: endedAtMs, result, reason: clip(reason) },
    }));
}

function stateOf({ status, taskState, host }: Pick<ServerPut, "status" | "taskState" | "host">): PathState {
  if (status === "DELETED" || taskState === "deleting") return "deleted";
  if (status === "BUILD" || (taskState !== null && host !== null)) return "building";
  return status === "ERROR" ? "error" : "active";
}

function clip(text: string | null): string | null {
  return text === null || text.length <= REASON_LENGTH_MAX ? text : `${text.slice(0, REASON_LENGTH_MAX)}…`;
}
