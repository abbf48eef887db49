/** What a scheduler has done since it started. The differences of two readings are rates. */
export interface SchedulerFigures {
  /** When the figures were read, by the scheduler's clock, in milliseconds since the epoch. */
  readonly at: number;
  /** Servers that it gave a host, moves included. */
  readonly placed: number;
  /** Requests and moves for which it found no host. */
  readonly refused: number;
  /** Claims that no longer fitted when they came to the cell. */
  readonly racesLost: number;
  /** Requests that it took from the queue, and the sum of the times for which they had waited there. */
  readonly taken: number;
  readonly queuedMs: number;
}
