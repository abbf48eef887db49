const TASKS_MAX = 10_000;

/** How often this conductor has come upon each of the tasks that it cannot carry out. The oldest are forgotten when there are too many. */
export class TakeCounts {
  readonly #takes = new Map<string, number>();

  /** Counts one more take, and returns how many they are with it. */
  count(taskId: string): number {
    const takes = (this.#takes.get(taskId) ?? 0) + 1;
    if (takes === 1 && this.#takes.size >= TASKS_MAX) this.#takes.delete([...this.#takes.keys()][0] ?? "");
    this.#takes.set(taskId, takes);
    return takes;
  }
}
