import { Task } from "../proto/gen/berth/cell.ts";

const known = new WeakMap<Task, Uint8Array>();

/**
 * A task on the wire. The same bytes go into the cell's database and to its conductors, and making them costs more than sending them: so
 * they are kept as long as the task is. The task must not change any more.
 */
export function taskBytes(task: Task): Uint8Array {
  let bytes = known.get(task);
  if (bytes === undefined) {
    bytes = Task.encode(task).finish();
    known.set(task, bytes);
  }
  return bytes;
}
