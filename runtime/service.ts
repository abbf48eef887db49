/** What every service is to its main: built by its `create…`, started once, closed once. */
export interface Service {
  /** Resolves when it serves. A failed start leaves nothing running. */
  start(): Promise<void>;
  /** Stops taking work, finishes or hands over what is in flight, frees everything. Repeatable. */
  close(): Promise<void>;
}
