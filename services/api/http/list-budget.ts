import { unavailable } from "./fault.ts";

export interface ListBudgetSettings {
  /** Rows of all answers that are under way. */
  readonly rowsMax: number;
  /** The same for one project. Its lists wait for each other, so that they do not make other projects' lists wait. */
  readonly projectRowsMax: number;
  /** Lists that wait, of all projects and of one. */
  readonly waitingMax: number;
  readonly projectWaitingMax: number;
  /** An answer with longer rows counts as one with more of them. */
  readonly rowBytes: number;
}

/** Rows that an answer may hold until it is sent. */
export interface ListShare {
  /** How many bytes the answer has become: from here on it counts by them. Nobody waits for it. */
  grow(bytes: number): void;
  /** The answer is sent, or nobody wants it any more. Repeatable. */
  release(): void;
}

interface Waiter {
  readonly projectId: string;
  readonly rows: number;
  readonly admit: (share: ListShare) => void;
}

/**
 * Bounds the memory of list answers that are under way, in rows: from the first read until the last byte is with the client. What does not
 * fit waits, the projects in turn and each project's lists in their order; what finds too many waiting is refused with 503. An answer
 * that turns out bigger than it was reckoned is finished all the same, and counts with its size against the next ones of its project;
 * against others' it counts as its project's part at most, so that nobody shuts others out.
 */
export class ListBudget {
  readonly #settings: ListBudgetSettings;
  readonly #rowsOf = new Map<string, number>();
  /** By project, in the order in which their turns come. */
  readonly #waiting = new Map<string, Waiter[]>();
  #rows = 0;
  #waitingCount = 0;

  constructor(settings: ListBudgetSettings) {
    this.#settings = settings;
  }

  /** Rows that are under way, of each project no more than its part. */
  get rows(): number {
    return this.#rows;
  }

  /** Lists that wait. */
  get waiting(): number {
    return this.#waitingCount;
  }

  /**
   * Calls `admit` with the share, at once or when its turn comes; never after the function that this returns was called. Throws 503 when
   * too many wait.
   */
  enter(projectId: string, rows: number, admit: (share: ListShare) => void): () => void {
    const waiter: Waiter = { projectId, rows, admit };
    // Those who wait already come first.
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

  /** A list that is larger than its project's part is let in while the project has no other under way. */
  #fits({ projectId, rows }: Waiter): boolean {
    const own = this.#rowsOf.get(projectId) ?? 0;
    const { rowsMax, projectRowsMax } = this.#settings;
    const counted = Math.min(rows, projectRowsMax);
    return (own === 0 || own + rows <= projectRowsMax) && this.#rows + counted <= rowsMax;
  }

  #take({ projectId, rows }: Waiter): ListShare {
    let held = 0;
    const hold = (more: number) => {
      held += more;
      const before = this.#rowsOf.get(projectId) ?? 0;
      const own = before + more;
      const { projectRowsMax } = this.#settings;
      this.#rows += Math.min(own, projectRowsMax) - Math.min(before, projectRowsMax);
      if (own === 0) this.#rowsOf.delete(projectId);
      else this.#rowsOf.set(projectId, own);
    };
    let released = false;
    hold(rows);
    return {
      grow: (bytes) => {
        if (released) return;
        hold(Math.max(1, Math.ceil(bytes / this.#settings.rowBytes)) - held);
        this.#admitNext();
      },
      release: () => {
        if (released) return;
        released = true;
        hold(-held);
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
      // Its next turn comes after everybody else's.
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
