const TASKS_MAX = 10_000;

/** Counts how often this conductor has taken each task that it cannot carry out. The oldest counts are dropped when there are too many. */
export class TakeCounts {
  readonly #takes = new Map<string, number>();

  /** Counts one more take and returns the new count. */
  count(taskId: string): number {
    const takes = (this.#takes.get(taskId) ?? 0) + 1;
    if (takes === 1 && this.#takes.size >= TASKS_MAX) this.#takes.delete([...this.#takes.keys()][0] ?? "");
    this.#takes.set(taskId, takes);
    return takes;
  }
}
