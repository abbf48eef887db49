import { isTold } from "../../core/tasks/told-task.ts";
import { Task, TaskNotice } from "../../proto/gen/berth/cell.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Bus } from "../../runtime/bus.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import { encodeOnce } from "../../runtime/encode-once.ts";
import { cellTasksSubject } from "./streams.ts";

/** Maximum number of tasks in one message. One conductor takes them all, so a message must not have too large a share of the work. */
const MESSAGE_TASKS_MAX = 64;
/** Maximum number of messages that wait for the answer of the bus. Their tasks wait for nothing else. */
const MESSAGES_OUT_MAX = 64;
/**
 * A message tells no more than this, and only names its other tasks: 64 usual ones. A conductor asks for a thousand messages at once, and NATS closes the connection
 * of a reader for which more than 64 MB wait.
 */
const TOLD_BYTES_MAX = 60_000;
/** A larger task is only named, so that one does not take the place of many. */
const TOLD_TASK_BYTES_MAX = 8_192;

/**
 * Tells a cell's conductors of stored tasks, so that they begin them sooner than their own sweep would. Tasks of one turn of the event loop
 * share messages, since a message costs the bus and the conductors far more than one more task in it.
 */
export class TaskAnnouncer {
  readonly #bus: Pick<Bus, "publish">;
  readonly #subject: string;
  readonly #together: Batcher<Task, void>;

  constructor(bus: Pick<Bus, "publish">, cell: string) {
    this.#bus = bus;
    this.#subject = cellTasksSubject(cell);
    this.#together = new Batcher({
      run: async (tasks) => {
        await this.#publish(tasks);
        return tasks.map((): void => undefined);
      },
      maxItems: MESSAGE_TASKS_MAX,
      concurrency: MESSAGES_OUT_MAX,
    });
  }

  /**
   * Publishes a stored task. One with headers, or with a `messageId` of its own, gets a message of its own; `messageId` is for a task that was
   * published before, whose message would otherwise be dropped as a duplicate, and which may have begun. Rejects as `Bus.publish` does.
   */
  announce(task: Task, headers: Readonly<Record<string, string>>, messageId?: string): Promise<void> {
    if (messageId === undefined && Object.keys(headers).length === 0) return this.#together.submit(task);
    const data = encodeMessage(TaskNotice, {
      id: task.id,
      more: [],
      told: messageId === undefined ? toldAmong([task]) : [],
    });
    return this.#bus.publish(this.#subject, data, { id: messageId ?? task.id, headers });
  }

  /** A message of several tasks has no id, since another one may begin with the same task. A second delivery does no harm. */
  #publish(tasks: readonly Task[]): Promise<void> {
    const [id = "", ...more] = tasks.map((task) => task.id);
    const data = encodeMessage(TaskNotice, { id, more, told: toldAmong(tasks) });
    return this.#bus.publish(this.#subject, data, more.length === 0 ? { id } : {});
  }
}

/** The tasks themselves that conductors may begin before they take them. */
function toldAmong(tasks: readonly Task[]): Buffer[] {
  let left = TOLD_BYTES_MAX;
  const told: Buffer[] = [];
  for (const task of tasks.filter(isTold)) {
    const bytes = encodeOnce(Task, task);
    if (bytes.length > Math.min(left, TOLD_TASK_BYTES_MAX)) continue;
    left -= bytes.length;
    told.push(Buffer.from(bytes));
  }
  return told;
}
