import type { Pool } from "pg";
import type { ClosingOutcome, TaskClosing } from "../../../core/stores/cell/operation-store.ts";
import { LOSS_MARGIN_MS } from "../../../core/stores/cell/quarantine.ts";
import type { TaskOutcome } from "../../../core/tasks/task-record.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";
import { LOST_COMMITS } from "./quarantine.ts";

/** Cost: one round trip. */
export async function closeTasks(pool: Pool, closings: readonly TaskClosing[]): Promise<readonly ClosingOutcome[]> {
  const rows = await queryStored<{ at: number; begun: boolean }>(pool, {
    name: "cell_close_tasks",
    text: "select at, begun from cell_close_tasks($1, $2)",
    values: [
      textArrayLiteral(closings.map(({ taskId }) => taskId)),
      textArrayLiteral(closings.map(({ serverUuid }) => serverUuid)),
    ],
  });
  const begun = new Set(rows.flatMap((row) => (row.begun ? row.at : [])));
  return closings.map((_, at) => (begun.has(at + 1) ? "begun" : "closed"));
}

/** Cost: one round trip. */
export async function readOutcomes(
  pool: Pool,
  taskIds: readonly string[],
): Promise<readonly (TaskOutcome | "open" | null)[]> {
  const rows = await queryStored<{ id: string; outcome: TaskOutcome | null }>(pool, {
    name: "task_outcomes",
    text: "select id, outcome from tasks where id = any ($1::uuid[])",
    values: [textArrayLiteral(taskIds)],
  });
  const found = new Map(rows.map(({ id, outcome }) => [id, outcome ?? "open"] as const));
  return taskIds.map((id) => found.get(id) ?? null);
}

/**
 * Cost: one round trip, with two look-ups for each server. After a loss of commits it reads all hosts once, if one of the servers is not younger. `except` compares them, because an anti join
 * took seconds with 10,000 hosts in a plan that was kept from before the first comparison. Notes the timeline, as `readRestoredAgo`.
 */
export async function readGuestsLeft(pool: Pool, serverUuids: readonly string[]): Promise<readonly boolean[]> {
  const rows = await queryStored<{ at: number }>(pool, {
    name: "guests_left",
    text: `with ${LOST_COMMITS}
      select w.at::int as at from unnest($1::uuid[]) with ordinality as w (uuid, at)
      where exists (select from migrations m where m.server_uuid = w.uuid and m.holds_source)
        or exists (select from quarantined_guests q where q.server_uuid = w.uuid::text)
        or exists (
          select from lost_commits l where l.at is not null and case
            when exists (
              select from servers s
              where s.uuid = w.uuid and s.status <> 'CLOSED' and s.created_at > l.at + $2::float8 * interval '1 ms'
            ) then false
            else exists (
              select h.name from hosts h where not h.forced_down
              except select c.host from compared_hosts c where c.incarnation = (select cell_incarnation())
            )
          end
        )`,
    values: [textArrayLiteral(serverUuids), LOSS_MARGIN_MS],
  });
  const left = new Set(rows.map((row) => row.at));
  return serverUuids.map((_, at) => left.has(at + 1));
}
