/** Names a task and the right to write for it. */
export interface TaskClaim {
  readonly taskId: string;
  readonly serverUuid: string;
  readonly epoch: number;
  /** Of a delete: migrations of the server that are not over; what they hold is given back with what the server holds. */
  readonly migrations?: readonly string[] | undefined;
  /** Of a delete: hosts that did not say that the guest is gone. What the server or its move holds there is kept until they do. */
  readonly left?: readonly string[] | undefined;
}

/**
 * `fenced`: somebody else owns the task, or it has ended otherwise; nothing was written and nothing may be done for it any
 * more. A commit that is repeated under the epoch that wrote it (its answer was lost) is `committed` again.
 */
export type Fenced = { readonly kind: "fenced" };
