/** The interface between every service and its main: a service is built by its `create…`, started once, and closed once. */
export interface Service {
  /** Resolves when the service serves. A failed start leaves nothing running. */
  start(): Promise<void>;
  /** Stops taking work, finishes or hands over what is in flight, and frees all resources. Repeatable. */
  close(): Promise<void>;
}
