import type { Pool } from "pg";
import { assert } from "../../../core/assert.ts";
import type { DeleteOutcome } from "../../../core/stores/cell/cell-store.ts";
import { Task } from "../../../proto/gen/berth/cell.ts";
import { encodeOnce } from "../../../runtime/encode-once.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { packBytes } from "../client/pack-bytes.ts";
import { queryStored } from "../client/store-query.ts";

interface DeleteRow {
  readonly at: number;
  readonly outcome: DeleteOutcome["kind"];
  /** The payload of an earlier delete task that is still running. */
  readonly payload: Buffer | null;
}

/** Stores delete tasks and fences all other tasks of their servers. Cost: one round trip. */
export function requestDeletes(pool: Pool, tasks: readonly Task[]): Promise<readonly DeleteOutcome[]> {
  return inRounds(tasks, serverOf, async (round) => {
    const packed = packBytes(round.map((task) => encodeOnce(Task, task)));
    const rows = await queryStored<DeleteRow>(pool, {
      name: "cell_request_delete",
      text: "select at, outcome, payload from cell_request_delete($1, $2, $3, $4, $5)",
      values: [
        textArrayLiteral(round.map(serverOf)),
        textArrayLiteral(round.map((task) => task.id)),
        packed.bytes,
        arrayLiteral(packed.starts),
        arrayLiteral(packed.lengths),
      ],
    });
    const outcomes: DeleteOutcome[] = [];
    for (const { at, outcome, payload } of rows) {
      const given = round[at - 1];
      assert(given !== undefined, `an answer for delete ${at} of ${round.length}`);
      outcomes[at - 1] =
        outcome === "deleted"
          ? { kind: "deleted" }
          : { kind: "queued", task: payload === null ? given : Task.decode(payload) };
    }
    return outcomes;
  });
}

function serverOf(task: Task): string {
  assert(task.work?.$case === "delete" && task.server !== undefined, `task ${task.id} deletes nothing`);
  return task.server.uuid;
}
