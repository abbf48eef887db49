/** What can be done to a server that was built. The moves first: they bring it to a destination, each with alternates. */
export const MOVE_KINDS = ["resize", "migrate", "live-migrate", "evacuate", "unshelve", "rebuild"] as const;
export const OPERATION_KINDS = [
  ...MOVE_KINDS,
  "confirm",
  "revert",
  "shelve",
  "shelve-offload",
  "stop",
  "start",
  "reboot",
  "hard-reboot",
  "pause",
  "unpause",
] as const;
export type MoveKind = (typeof MOVE_KINDS)[number];
export type OperationKind = (typeof OPERATION_KINDS)[number];

export function isMove(kind: OperationKind): kind is MoveKind {
  return (MOVE_KINDS as readonly string[]).includes(kind);
}

/** The kind that a task names. Null: one that this version does not know. */
export function operationKind(kind: string): OperationKind | null {
  return (OPERATION_KINDS as readonly string[]).includes(kind) ? (kind as OperationKind) : null;
}
