import type { Pool } from "pg";
import type { ReachedStage, TaskOutcome, TaskRecord } from "../../../core/tasks/task-record.ts";
import { onlyUuids, queryStored, selectMs } from "../client/store-query.ts";
import { taskOf } from "./take-tasks.ts";

interface TaskRow {
  readonly id: string;
  readonly kind: TaskRecord["kind"];
  readonly payload: Buffer;
  readonly created_at_ms: number;
  readonly ended_at_ms: number | null;
  readonly outcome: TaskOutcome | null;
  readonly stage: string | null;
  readonly reason: string;
  readonly takings: readonly string[];
  readonly stages: readonly string[];
}

/** Cost: one round trip. Reads each task by its key, since ended tasks are in no index by server. */
export async function readTasksOf(pool: Pool, serverUuid: string): Promise<readonly TaskRecord[]> {
  if (onlyUuids([serverUuid]).length === 0) return [];
  const rows = await queryStored<TaskRow>(pool, {
    name: "tasks_of_server",
    text: `with found as (
        select task_id as id from attempts where server_uuid = $1
        union select uuid from migrations where server_uuid = $1
        union select unnest(later_tasks) from servers where uuid = $1
        union select id from tasks where server_uuid = $1 and outcome is null
      )
      select t.id, t.kind, t.payload, ${selectMs("created_at", "t.")}, ${selectMs("ended_at", "t.")}, t.outcome, t.stage, t.reason,
        t.takings, t.stages
      from found join tasks t on t.id = found.id
      where t.server_uuid = $1 order by t.created_at, t.id`,
    values: [serverUuid],
  });
  return rows.map((row) => ({
    task: taskOf(row),
    kind: row.kind,
    createdAtMs: row.created_at_ms,
    endedAtMs: row.ended_at_ms,
    outcome: row.outcome,
    stage: row.stage,
    reason: row.reason,
    takings: row.takings.map(notedIn).map(({ atMs, first, rest }) => ({ atMs, conductorId: first, name: rest })),
    stages: stagesOf(row.stages),
  }));
}

/** The stages that `cell_write_step` has recorded of an operation. */
export function stagesOf(noted: readonly string[]): readonly ReachedStage[] {
  return noted.map(notedIn).map(({ atMs, first, rest }) => ({ atMs, selection: Number(first), stage: rest }));
}

/** Parses an entry that `cell_note` wrote: `<milliseconds>/<first>/<rest>`. Only the rest may contain slashes. */
function notedIn(entry: string): { readonly atMs: number; readonly first: string; readonly rest: string } {
  const [at = "", first = "", ...rest] = entry.split("/");
  return { atMs: Number(at), first, rest: rest.join("/") };
}
