import type { Pool } from "pg";
import type { TakenTask } from "../../../core/stores/cell/cell-store.ts";
import type { Tenure } from "../../../core/tasks/tenure.ts";
import { Task } from "../../../proto/gen/berth/cell.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

/** Renews the lease, and forgets conductors that have been gone for an hour. */
export async function renewLease(
  pool: Pool,
  conductor: { readonly id: string; readonly name: string; readonly leaseMs: number },
): Promise<void> {
  await queryStored(pool, {
    name: "renew_lease",
    text: `with forgotten as (
        delete from conductors where lease_expires_at < now() - interval '1 hour' and id <> $1
      )
      insert into conductors (id, name, lease_expires_at, renewed_at) values ($1, $2, now() + $3::float8 * interval '1 ms', now())
      on conflict (id) do update set name = excluded.name, lease_expires_at = excluded.lease_expires_at, renewed_at = excluded.renewed_at`,
    values: [conductor.id, conductor.name, conductor.leaseMs],
  });
}

/** An owner without a lease counts as one whose lease ran out. */
export async function giveUpLease(pool: Pool, conductorId: string): Promise<void> {
  await queryStored(pool, {
    name: "give_up_lease",
    text: "delete from conductors where id = $1",
    values: [conductorId],
  });
}

interface TakenRow {
  readonly id: string;
  readonly payload: Buffer;
  readonly epoch: number;
  readonly selection: number;
  readonly host: string | null;
  readonly attempt_id: string | null;
}

const TAKEN_COLUMNS = "id, payload, epoch, selection, host, attempt_id";

/** Cost: one round trip, one heap-only update for each task. */
export async function takeTasks(
  pool: Pool,
  conductorId: string,
  taskIds: readonly string[],
): Promise<readonly TakenTask[]> {
  const ids = onlyUuids([...new Set(taskIds)]);
  if (ids.length === 0) return [];
  const rows = await queryStored<TakenRow>(pool, {
    name: "cell_take",
    text: `select ${TAKEN_COLUMNS} from cell_take($1, $2)`,
    values: [conductorId, textArrayLiteral(ids)],
  });
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids
    .map((id) => byId.get(id.toLowerCase()))
    .filter((row) => row !== undefined)
    .map(takenOf);
}

/** Cost: one round trip, one heap-only update for each task. */
export async function holdTasks(
  pool: Pool,
  conductorId: string,
  taskIds: readonly string[],
): Promise<readonly boolean[]> {
  const ids = onlyUuids([...new Set(taskIds)]);
  if (ids.length === 0) return taskIds.map(() => false);
  const rows = await queryStored<{ id: string }>(pool, {
    name: "cell_hold",
    text: "select cell_hold($1, $2) as id",
    values: [conductorId, textArrayLiteral(ids)],
  });
  const held = new Set(rows.map((row) => row.id));
  return taskIds.map((id) => held.has(id.toLowerCase()));
}

export async function sweepTasks(
  pool: Pool,
  conductorId: string,
  untakenMs: number,
  limit: number,
  except: readonly string[],
): Promise<readonly TakenTask[]> {
  const rows = await queryStored<TakenRow>(pool, {
    name: "cell_sweep",
    text: `select ${TAKEN_COLUMNS} from cell_sweep($1, $2, $3, $4)`,
    values: [conductorId, untakenMs, limit, textArrayLiteral(onlyUuids(except))],
  });
  return rows.map(takenOf);
}

/** Cost: one round trip, one heap-only update for each task. */
export async function releaseTasks(
  pool: Pool,
  conductorId: string,
  tenures: readonly Tenure[],
): Promise<readonly boolean[]> {
  if (tenures.length === 0) return [];
  const rows = await queryStored<{ id: string; epoch: number }>(pool, {
    name: "cell_hand_over",
    text: "select id, epoch from cell_hand_over($1, $2, $3)",
    values: [
      conductorId,
      textArrayLiteral(tenures.map((tenure) => tenure.taskId)),
      arrayLiteral(tenures.map((tenure) => tenure.epoch)),
    ],
  });
  const freed = new Set(rows.map((row) => `${row.id} ${row.epoch}`));
  return tenures.map((tenure) => freed.delete(`${tenure.taskId} ${tenure.epoch}`));
}

/** Decodes row by row: an unreadable payload becomes an empty task, and the others of its batch are taken all the same. */
export function taskOf({ id, payload }: Pick<TakenRow, "id" | "payload">): Task {
  try {
    return Task.decode(payload);
  } catch {
    return { id, server: undefined, work: undefined };
  }
}

function takenOf(row: TakenRow): TakenTask {
  return {
    task: taskOf(row),
    epoch: row.epoch,
    selection: row.selection,
    host: row.host,
    attemptId: row.attempt_id,
  };
}

/** Finds the row by its primary key. */
export async function holdsTask(pool: Pool, { taskId, epoch }: Pick<Tenure, "taskId" | "epoch">): Promise<boolean> {
  const rows = await queryStored(pool, {
    name: "holds_task",
    text: "select id from tasks where id = any ($1::uuid[]) and epoch = $2 and outcome is null",
    values: [onlyUuids([taskId]), epoch],
  });
  return rows.length > 0;
}

export async function readOwnedTasks(pool: Pool, conductorId: string): Promise<readonly string[]> {
  const rows = await queryStored<{ id: string }>(pool, {
    name: "owned_tasks",
    text: "select id from tasks where outcome is null and owner = $1 order by created_at, id",
    values: [conductorId],
  });
  return rows.map((row) => row.id);
}
