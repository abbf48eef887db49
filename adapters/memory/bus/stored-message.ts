import type { BusMessage } from "../../../runtime/bus.ts";

/** What a stream holds of one message; shared by its consumers. */
export interface StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: BusMessage["headers"];
  readonly storedAtMs: number;
}
