/** A part that holds something open (a port, a connection) until it is closed. */
export interface Closable {
  close(): Promise<void>;
}
