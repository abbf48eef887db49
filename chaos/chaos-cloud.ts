import type { AuditReport } from "../audit/audit-report.ts";
import type { ChaosTarget } from "./history-line.ts";

/** The roles that a part of a cloud can have. */
export const ROLES = ["api", "scheduler", "conductor", "agent", "postgres", "nats", "redis"] as const;
export type Role = (typeof ROLES)[number];

/** A process, or a server of several processes, that can be killed, paused and started again. */
export interface Part {
  /** A unique name, for example `cell1-conductor-2`. */
  readonly name: string;
  readonly role: Role;
  /** Name of the cell, or null for parts of the API tier. */
  readonly cell: string | null;
  readonly running: boolean;
  /** Sends SIGKILL. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** Resolves when the part serves. */
  start(): Promise<unknown>;
  /** Sends SIGSTOP: the process is stopped, with all its connections open, until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
}

/** Whether other parts cannot work without this one: databases, message servers, Redis. */
export function isServer({ role }: Pick<Part, "role">): boolean {
  return role === "postgres" || role === "nats" || role === "redis";
}

/** One end of a link. `above` is everything of the API tier that speaks to cells; `clients` are the users of the API. */
export interface LinkEnd {
  readonly name: string;
  readonly role: Role | "above" | "clients";
  readonly cell: string | null;
}

/** A direction of a link: `there` is from the connecting side to the serving side, `back` is the other way. */
export type Way = "both" | "there" | "back";

/** All connections between two parts. */
export interface Link {
  readonly from: LinkEnd;
  readonly to: LinkEnd;
  /** Nothing passes any longer, and neither side is notified, as when a cable is pulled. */
  cut(way: Way): Promise<void>;
  /** Delays everything by `ms`. */
  slow(ms: number): Promise<void>;
  /** The link is neither cut nor slow, and data that was held back arrives. */
  heal(): Promise<void>;
}

/** The target cannot do this harm. The message says why. */
export class CannotHarmError extends Error {
  readonly code = "cannot-harm";

  constructor(message: string) {
    super(message);
    this.name = "CannotHarmError";
  }
}

/** A part that ended without having been told to, and was started again. */
export interface Death {
  readonly part: string;
  /** Whether the part is a server without which the cloud cannot work. */
  readonly isServer: boolean;
  /** How the part ended, and what it logged before; for people. */
  readonly words: string;
}

/** A cloud that faults are injected into. Methods throw a CannotHarmError for harm that the cloud cannot do. */
export interface ChaosCloud {
  readonly target: ChaosTarget;
  readonly cells: readonly string[];
  readonly parts: readonly Part[];
  readonly links: readonly Link[];
  /** Base URLs of all apis, without a path; they stay the same. */
  readonly apiUrls: readonly string[];
  /** Deletes everything in Redis. */
  flushRedis(): Promise<void>;
  /** A cell's Postgres dies for good and its standby takes over. Resolves when the standby serves. */
  failover(cell: string): Promise<void>;
  /** Gives the cell a standby again. Resolves when the standby has caught up with its Postgres. */
  restoreStandby(cell: string): Promise<void>;
  /** From now on an agent's journal cannot grow, or a NATS server cannot write. */
  fillDisk(part: string): Promise<void>;
  freeDisk(part: string): Promise<void>;
  /** Starts the parts that do not run, resumes paused ones, and resolves when every host is up. */
  makeWhole(): Promise<void>;
  /** Audits the six laws. Agents are asked which guests run. */
  audit(options: { readonly pauseMs: number; readonly patienceMs: number }): Promise<AuditReport>;
  /** UUIDs of all consumers that hold allocations, or null when the databases cannot be reached. */
  holders(): Promise<readonly string[] | null>;
  /** All deaths since the beginning, oldest first. */
  deaths(): readonly Death[];
  /** The last lines that each part logged. */
  logs(): Promise<readonly { readonly part: string; readonly text: string }[]>;
  /** Ends everything that the cloud has started; nothing of it is left. */
  close(): Promise<void>;
}
