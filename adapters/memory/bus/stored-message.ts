import type { BusMessage } from "../../../runtime/bus.ts";

/** A message as a stream stores it. Its consumers share this object. */
export interface StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: BusMessage["headers"];
  readonly storedAtMs: number;
}
