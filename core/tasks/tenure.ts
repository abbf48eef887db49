/** Names a task and the epoch that gives the right to write for it. */
export interface Tenure {
  readonly taskId: string;
  readonly serverUuid: string;
  /** 0 while no conductor has taken the task. */
  readonly epoch: number;
  /** For a build: the conductor that carries it out without having taken it. Its end then names it. */
  readonly untakenBy?: string | undefined;
  /** For a delete: the server's open migrations. Their allocations are released together with the server's. */
  readonly migrations?: readonly string[] | undefined;
  /**
   * For a delete: hosts that did not report that the guest is gone. The allocations of the server or its move there are kept until they do.
   */
  readonly left?: readonly string[] | undefined;
}

/**
 * `fenced` means that another conductor owns the task, or that the task has ended otherwise. Nothing was written, and the caller must do
 * nothing more for it. A commit that is repeated under its own epoch, because the answer was lost, is `committed` again.
 */
export type Fenced = { readonly kind: "fenced" };
