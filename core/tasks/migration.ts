import type { Operation } from "../../proto/gen/berth/cell.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { TransferProgress } from "../agent/transfer-progress.ts";
import type { OperationKind } from "./operation-kinds.ts";

/** The content of a move's own row. The statuses are Nova's. */
export interface MigrationColumns {
  readonly uuid: string;
  readonly serverUuid: string;
  readonly kind: OperationKind;
  readonly status: string;
  readonly sourceHost: string | null;
  readonly sourceAttemptId: string | null;
  readonly destHost: string;
  readonly destAttemptId: string;
  readonly ended: boolean;
  readonly holdsSource: boolean;
  /** A note for people about the move's present state. Empty when there is nothing to say. */
  readonly note: string;
  /** How far the last hand-over has come, or null when its driver has not said. */
  readonly progress: TransferProgress | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface ReadableMigration extends MigrationColumns {
  /** The operation as it began, with the source's allocations and all destinations. */
  readonly operation: Operation;
  /** The server's spec after the move. */
  readonly server: ServerSpec;
}

/** A move whose task is damaged or of an unknown version. Its note says so. */
export interface UnreadableMigration extends MigrationColumns {
  readonly operation: null;
  readonly server: null;
}

/** A move, past or present. */
export type Migration = ReadableMigration | UnreadableMigration;
