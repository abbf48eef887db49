import type { LawsReading } from "../../../core/stores/laws-reading.ts";

/**
 * The data that the dashboard and `berth top` receive: first a picture, and then changes of it. Times are milliseconds since the epoch.
 *
 * The data flow: each api follows every cell's rows anyway (the ledger views). While somebody watches, a `LiveModel` reads from these views
 * the hosts that changed, and receives each server's row, four times a second. The API database is asked for the newest requests, and the
 * cells for the attempts of the servers that are shown. `LiveStream` numbers the changes and sends them to every watcher.
 */
export interface LivePicture {
  /** The names of the amounts in a host's row, in their order. */
  readonly classes: readonly string[];
  readonly cells: readonly LiveCell[];
  readonly hosts: readonly LiveHostRow[];
  readonly paths: readonly LivePath[];
  readonly figures: LiveFigures;
  /** The last hour, a sample every 15 s, the oldest first. It comes with the picture only: watchers take their own samples of what follows. */
  readonly history: readonly LiveSample[];
}

/** All hosts together at a time: used and capacity for each of `classes`, as in a host's row. */
export type LiveSample = readonly [at: number, ...amounts: number[]];

/** Only the differences from the previous picture. */
export interface LiveChange {
  readonly cells?: readonly LiveCell[];
  readonly hosts?: readonly LiveHostRow[];
  /** Removed hosts, by the cell's place in `cells` and by name. */
  readonly goneHosts?: readonly (readonly [cell: number, name: string])[];
  readonly paths?: readonly LivePath[];
  /** Ids of paths that are no longer shown. */
  readonly gonePaths?: readonly string[];
  readonly figures?: LiveFigures;
}

export const LIVE_UP = 1;
export const LIVE_DISABLED = 2;

/**
 * `cell` is the place in `cells`, `state` has the bits LIVE_UP and LIVE_DISABLED, `busy` counts the servers that are being built or moved,
 * `failures` is the faded count of failed builds. The amounts come in pairs, used and capacity, for each of `classes`.
 */
export type LiveHostRow = readonly [
  cell: number,
  name: string,
  state: number,
  servers: number,
  busy: number,
  failures: number,
  ...amounts: number[],
];
/** The number of fields in a LiveHostRow before the amounts. */
export const HOST_AMOUNTS_AT = 6;

export interface LiveCell {
  readonly name: string;
  /** Whether the ledger view follows the cell now. */
  readonly ready: boolean;
  /** Whether the cell's database answered the last question. */
  readonly answers: boolean;
  /** How many milliseconds the view was behind at its last transaction. */
  readonly lagMs: number | null;
  readonly conductors: readonly LiveConductor[];
}

export interface LiveConductor {
  readonly id: string;
  readonly name: string;
  /** Whether its lease is still valid. */
  readonly alive: boolean;
  /** The number of unfinished tasks that it has taken. */
  readonly tasks: number;
}

/** A scheduler that is alive, with what it did each second of the last ten. Null: not known, or for the age, no request was taken. */
export interface LiveScheduler {
  readonly id: string;
  readonly placed: number | null;
  readonly refused: number | null;
  readonly racesLost: number | null;
  /** How long requests had waited in the queue when they were taken, on average. */
  readonly queueAgeMs: number | null;
}

/** `accepted` waits for a host, and `building` is in its cell. The other states are final. */
export type PathState = "accepted" | "building" | "active" | "error" | "deleted";

/** The way of one server's build or move. */
export interface LivePath {
  /** The server. */
  readonly id: string;
  readonly name: string;
  readonly project: string;
  readonly cell: string | null;
  /** `build`, or the task state of a move, such as `migrating`. */
  readonly kind: string;
  readonly state: PathState;
  readonly at: number;
  readonly endedAt: number | null;
  readonly fault: string | null;
  readonly attempts: readonly LiveAttempt[];
}

export interface LiveAttempt {
  readonly host: string;
  readonly at: number;
  readonly endedAt: number | null;
  readonly result: string | null;
  readonly reason: string | null;
}

export interface LiveFigures {
  readonly at: number;
  /** Counted since somebody began to watch. */
  readonly counts: LiveCounts;
  /** Servers that are being built or moved now. */
  readonly busy: number;
  /** Requests among the newest that have no host yet, and since when the oldest of them waits. */
  readonly waiting: number;
  readonly oldestWaitingAt: number | null;
  /** The counts of each cell, in the order of `cells`. A server that got no host is counted in none. */
  readonly cellCounts: readonly LiveCellCounts[];
  readonly schedulers: readonly LiveScheduler[];
  /** Null when no audit reports here. */
  readonly laws: LawsReading | null;
  /** The faults that are being injected. Null where that is not possible. */
  readonly faults: LiveFaults | null;
}

/** Counted since somebody began to watch, as LiveCounts are. */
export type LiveCellCounts = readonly [active: number, hops: number, failed: number];

export interface LiveCounts {
  /** Servers that got a host by a scheduler. */
  readonly placed: number;
  readonly hops: number;
  readonly active: number;
  readonly failed: number;
  readonly deleted: number;
}

/** A reading of the laws that is older says nothing about the present. */
export const LAWS_FRESH_MS = 60_000;

/** Faults that a cloud in one process can be given, to see how it heals. */
export interface LiveFaults {
  /** The share of builds that fail on their host, from 0 to 1. */
  readonly failShare: number;
  /** How long a build takes. */
  readonly buildMs: number;
  /** Hosts that are silent. */
  readonly hostsDown: readonly string[];
  /** Names of conductors that were killed. */
  readonly conductorsKilled: readonly string[];
  /** Cells that the API tier cannot reach. */
  readonly cellsCut: readonly string[];
}
