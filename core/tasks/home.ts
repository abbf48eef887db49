import type { OperationKind } from "./operation-kinds.ts";
import type { Server } from "./server.ts";

/** The part of a server's row from which a conductor decides whether its guest may run. */
export interface Home {
  readonly serverUuid: string;
  readonly status: Server["status"];
  readonly host: string | null;
  readonly attemptId: string | null;
  readonly revision: number;
  /** An operation or a delete is open, and its conductor starts, stops and destroys the server's guests. */
  readonly busy: boolean;
  /** The server's open move, if there is one. The guests of the move are kept although they are not at home. */
  readonly move: {
    readonly uuid: string;
    readonly kind: OperationKind;
    readonly source: { readonly host: string; readonly attemptId: string } | null;
    readonly dest: { readonly host: string; readonly attemptId: string };
    /** Whether the server runs while the move waits for its confirmation. */
    readonly runs: boolean;
  } | null;
}
