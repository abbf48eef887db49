import { TaskNotice } from "../../proto/gen/berth/cell.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Bus } from "../../runtime/bus.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import { cellTasksSubject } from "./streams.ts";

/** Maximum number of tasks in one message. One conductor takes them all, so a message must not have too large a share of the work. */
const MESSAGE_TASKS_MAX = 64;
/** Maximum number of messages that wait for the answer of the bus. Their tasks wait for nothing else. */
const MESSAGES_OUT_MAX = 64;

/**
 * Tells a cell's conductors of stored tasks, so that they take them sooner than their own sweep would. Tasks of one turn of the event loop
 * share messages, since a message costs the bus and the conductors far more than one more id in it.
 */
export class TaskAnnouncer {
  readonly #bus: Pick<Bus, "publish">;
  readonly #subject: string;
  readonly #together: Batcher<string, void>;

  constructor(bus: Pick<Bus, "publish">, cell: string) {
    this.#bus = bus;
    this.#subject = cellTasksSubject(cell);
    this.#together = new Batcher({
      run: async (ids) => {
        await this.#publish(ids);
        return ids.map((): void => undefined);
      },
      maxItems: MESSAGE_TASKS_MAX,
      concurrency: MESSAGES_OUT_MAX,
    });
  }

  /**
   * Publishes the id of a stored task. A task with headers, or with a `messageId` of its own, gets a message of its own; `messageId` is for
   * a task that was published before, whose message would otherwise be dropped as a duplicate. Rejects as `Bus.publish` does.
   */
  announce(taskId: string, headers: Readonly<Record<string, string>>, messageId?: string): Promise<void> {
    if (messageId === undefined && Object.keys(headers).length === 0) return this.#together.submit(taskId);
    const data = encodeMessage(TaskNotice, { id: taskId, more: [] });
    return this.#bus.publish(this.#subject, data, { id: messageId ?? taskId, headers });
  }

  /** A message of several tasks has no id, since another one may begin with the same task. A second delivery does no harm. */
  #publish([id = "", ...more]: readonly string[]): Promise<void> {
    const data = encodeMessage(TaskNotice, { id, more });
    return this.#bus.publish(this.#subject, data, more.length === 0 ? { id } : {});
  }
}
