import type { AuditReport } from "../audit/audit-report.ts";
import type { ChaosTarget } from "./history-line.ts";

/** What a part of a cloud does. */
export const ROLES = ["api", "scheduler", "conductor", "agent", "postgres", "nats", "redis"] as const;
export type Role = (typeof ROLES)[number];

/** A process, or a server of several, that can be ended in every way and started again. */
export interface Part {
  /** Unlike any other's: `cell1-conductor-2`. */
  readonly name: string;
  readonly role: Role;
  /** Null above the cells. */
  readonly cell: string | null;
  readonly running: boolean;
  /** `kill -9`. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Resolves when it serves. */
  start(): Promise<unknown>;
  /** SIGSTOP: it stands still, with all its connections open, until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
}

/** Whether others cannot do without it: databases, message servers, Redis. */
export function isServer({ role }: Pick<Part, "role">): boolean {
  return role === "postgres" || role === "nats" || role === "redis";
}

/** One end of a link. `above`: everything of the API tier that speaks to cells; `clients`: those who use the API. */
export interface LinkEnd {
  readonly name: string;
  readonly role: Role | "above" | "clients";
  readonly cell: string | null;
}

/** Which way of a link: from who connects to who serves, or back. */
export type Way = "both" | "there" | "back";

/** All connections between two parts. */
export interface Link {
  readonly from: LinkEnd;
  readonly to: LinkEnd;
  /** Nothing passes any more, and nothing is told of it, as when a cable is pulled. */
  cut(way: Way): Promise<void>;
  /** Everything arrives so much later. */
  slow(ms: number): Promise<void>;
  /** Neither cut nor slow; what was held back arrives. */
  heal(): Promise<void>;
}

/** The target cannot do this harm; the message says why, for people. */
export class CannotHarmError extends Error {
  readonly code = "cannot-harm";

  constructor(message: string) {
    super(message);
    this.name = "CannotHarmError";
  }
}

/** A part ended without having been told to, and was started again. */
export interface Death {
  readonly part: string;
  /** Of a server that the cloud stands on. */
  readonly isServer: boolean;
  /** How it ended, and what it said before; for people. */
  readonly words: string;
}

/** A cloud that chaos is done to. What it cannot do throws CannotHarmError. */
export interface ChaosCloud {
  readonly target: ChaosTarget;
  readonly cells: readonly string[];
  readonly parts: readonly Part[];
  readonly links: readonly Link[];
  /** Bases of all apis, without a path; they stay the same. */
  readonly apiUrls: readonly string[];
  /** Redis forgets everything. */
  flushRedis(): Promise<void>;
  /** A cell's Postgres dies for ever, and its standby takes its place; resolves when that serves. */
  failover(cell: string): Promise<void>;
  /** The cell has a standby again, which is on a par with its Postgres. */
  restoreStandby(cell: string): Promise<void>;
  /** From now on an agent's journal cannot grow, or a NATS server can write nothing. */
  fillDisk(part: string): Promise<void>;
  freeDisk(part: string): Promise<void>;
  /** Starts what does not run, ends what is paused, and resolves when every host is up. */
  makeWhole(): Promise<void>;
  /** The audit of the six laws; agents are asked what runs. */
  audit(options: { readonly pauseMs: number; readonly patienceMs: number }): Promise<AuditReport>;
  /** Uuids of all that hold allocations; null where the databases are out of reach. */
  holders(): Promise<readonly string[] | null>;
  /** Since the beginning, in turn. */
  deaths(): readonly Death[];
  /** The last lines that each part logged, for people. */
  logs(): Promise<readonly { readonly part: string; readonly text: string }[]>;
  /** Ends everything that it started; nothing of it is left. */
  close(): Promise<void>;
}
