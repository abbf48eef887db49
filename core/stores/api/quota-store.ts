import type { QuotaExcess, QuotaLimits, ServerAmounts, ServerUsage, SetLimits, StatedLimits } from "./quota-limits.ts";

/** The limits of a project, or of one user in it. */
export interface QuotaScope {
  readonly projectId: string;
  /** Null means the project. */
  readonly userId: string | null;
}

/** A server that is about to be resized. */
export interface ResizeCharge {
  readonly serverUuid: string;
  /** The amounts of the server with its new flavor. */
  readonly amounts: ServerAmounts;
}

/** A server whose resize was charged. Its amounts must be updated to its flavor when the resize has ended. */
export interface ChargedResize {
  readonly serverUuid: string;
  /** Rises with each charge of the server, so that a settlement cannot undo a later charge. */
  readonly version: number;
}

/** A charged resize as it was read, without being handed out. */
export interface SeenCharge extends ChargedResize {
  /** When the note was last charged or handed out. A note with another time is a later one, or another process looks at it. */
  readonly touched: string;
}

/**
 * Quotas in the API database: the limits that operators set, and the amounts of servers. Usage is written by the statements that accept and
 * cancel requests (see ApiStore), so it is exact. Both implementations (Postgres, in-memory) pass test/contract/quota-store. Operating
 * failures throw the store's error.
 */
export interface QuotaStore {
  setLimits(scope: QuotaScope, limits: Partial<QuotaLimits>): Promise<void>;
  limits(projectId: string): Promise<SetLimits>;
  /** Forgets the limits of the scope; those of a project with the limits of all its users there. */
  forgetLimits(scope: QuotaScope): Promise<void>;
  setClassLimits(className: string, limits: Partial<QuotaLimits>): Promise<void>;
  classLimits(className: string): Promise<Partial<QuotaLimits>>;
  /**
   * The sums of the amounts of the project's living servers. `withClasses`: also of each resource class, for the whole project; servers that were accepted
   * without limits of resource classes are missing in them until the project's next decision, which counts them.
   */
  usage(projectId: string, options?: { readonly withClasses: boolean }): Promise<ServerUsage>;
  /**
   * Counts a server as the larger of its present size and the new one, and keeps a note of it. Returns why it is refused when the difference
   * is over the quota of the server's project or user; then nothing changes. An unknown or deleted server is not counted. Repeatable.
   * `stated`: the limits of its project as another service states them, which hold alone then.
   */
  chargeResize(charge: ResizeCharge, defaults: QuotaLimits, stated?: StatedLimits): Promise<QuotaExcess | null>;
  /** Hands out charged resizes that were charged and last handed out at least `untouchedMs` ago. */
  chargedResizes(untouchedMs: number, limit: number): Promise<readonly ChargedResize[]>;
  /**
   * The note of a server that one call alone has charged since the last settlement. Null without a note, and if several calls have charged the server: one of them may still have to
   * accept its move.
   */
  soleCharge(serverUuid: string): Promise<SeenCharge | null>;
  /**
   * Counts the server with its present amounts and drops the note, unless it was charged again since, or was touched since it was seen. Does nothing for a server that is deleted
   * softly, so that it is settled after it is restored.
   */
  settleResize(resize: ChargedResize | SeenCharge, amounts: ServerAmounts): Promise<void>;
}
