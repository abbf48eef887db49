import { unavailable } from "./fault.ts";

export interface ListBudgetSettings {
  /** Maximum number of rows in all list answers that are under way. */
  readonly rowsMax: number;
  /**
   * Maximum number of rows in the list answers of one project. Its further lists wait for its earlier ones, and do not delay the lists of
   * other projects.
   */
  readonly projectRowsMax: number;
  /** Maximum number of lists that wait, of all projects and of one project. */
  readonly waitingMax: number;
  readonly projectWaitingMax: number;
  /** Bytes that count as one row, so that an answer with longer rows counts as more rows. */
  readonly rowBytes: number;
}

/** The rows of the budget that an answer holds until it is sent. */
export interface ListShare {
  /** Sets the size of the answer in bytes, by which it counts from now on. Never waits. */
  grow(bytes: number): void;
  /** Ends the share when the answer was sent or its client has gone. Repeatable. */
  release(): void;
}

interface Waiter {
  readonly projectId: string;
  readonly rows: number;
  readonly admit: (share: ListShare) => void;
}

/**
 * Limits the memory of list answers that are under way, in rows, from the first read until the last byte was sent. Lists that do not fit
 * wait: projects take turns, and lists of one project keep their order. A list that finds too many waiting is refused with 503.
 *
 * An answer that turns out bigger than estimated is still finished. It then counts with its full size for its own project, but with at most
 * the project's share for other projects, so that no project can block the others.
 */
export class ListBudget {
  readonly #settings: ListBudgetSettings;
  readonly #rowsOf = new Map<string, number>();
  /** The waiting lists by project, in the order of the projects' turns. */
  readonly #waiting = new Map<string, Waiter[]>();
  #rows = 0;
  #waitingCount = 0;

  constructor(settings: ListBudgetSettings) {
    this.#settings = settings;
  }

  /** Number of rows under way. A project's rows count at most up to its share. */
  get rows(): number {
    return this.#rows;
  }

  /** Number of lists that wait. */
  get waiting(): number {
    return this.#waitingCount;
  }

  /**
   * Calls `admit` with the share, at once or when the list's turn comes. The returned function cancels the wait; `admit` is never called
   * after it. Throws 503 when too many lists wait.
   */
  enter(projectId: string, rows: number, admit: (share: ListShare) => void): () => void {
    const waiter: Waiter = { projectId, rows, admit };
    // Lists of the project that already wait come first.
    if (!this.#waiting.has(projectId) && this.#fits(waiter)) {
      admit(this.#take(waiter));
      return () => {};
    }
    const ofProject = this.#waiting.get(projectId) ?? [];
    if (this.#waitingCount >= this.#settings.waitingMax || ofProject.length >= this.#settings.projectWaitingMax)
      throw unavailable("Too many lists wait for an answer already; try again, or ask for shorter pages.");
    ofProject.push(waiter);
    this.#waiting.set(projectId, ofProject);
    this.#waitingCount += 1;
    return () => this.#leave(waiter);
  }

  /** Whether the list may start now. A list that exceeds its project's share may start while the project has no other list under way. */
  #fits({ projectId, rows }: Waiter): boolean {
    const own = this.#rowsOf.get(projectId) ?? 0;
    const { rowsMax, projectRowsMax } = this.#settings;
    const counted = Math.min(rows, projectRowsMax);
    return (own === 0 || own + rows <= projectRowsMax) && this.#rows + counted <= rowsMax;
  }

  #take({ projectId, rows }: Waiter): ListShare {
    let reserved = 0;
    const reserve = (more: number) => {
      reserved += more;
      const before = this.#rowsOf.get(projectId) ?? 0;
      const own = before + more;
      const { projectRowsMax } = this.#settings;
      this.#rows += Math.min(own, projectRowsMax) - Math.min(before, projectRowsMax);
      if (own === 0) this.#rowsOf.delete(projectId);
      else this.#rowsOf.set(projectId, own);
    };
    let released = false;
    reserve(rows);
    return {
      grow: (bytes) => {
        if (released) return;
        reserve(Math.max(1, Math.ceil(bytes / this.#settings.rowBytes)) - reserved);
        this.#admitNext();
      },
      release: () => {
        if (released) return;
        released = true;
        reserve(-reserved);
        this.#admitNext();
      },
    };
  }

  #admitNext(): void {
    for (const [projectId, waiters] of [...this.#waiting]) {
      const [next] = waiters;
      if (next === undefined || !this.#fits(next)) continue;
      waiters.shift();
      this.#waitingCount -= 1;
      // The project's next turn comes after those of all other projects.
      this.#waiting.delete(projectId);
      if (waiters.length > 0) this.#waiting.set(projectId, waiters);
      next.admit(this.#take(next));
    }
  }

  #leave(waiter: Waiter): void {
    const waiters = this.#waiting.get(waiter.projectId) ?? [];
    const at = waiters.indexOf(waiter);
    if (at === -1) return;
    waiters.splice(at, 1);
    this.#waitingCount -= 1;
    if (waiters.length === 0) this.#waiting.delete(waiter.projectId);
  }
}
