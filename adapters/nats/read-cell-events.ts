import { CellEvent } from "../../proto/gen/berth/cell.ts";
import { decodeBounded } from "../../runtime/decode-bounded.ts";

/** A conductor sends 64 events in a message at most, each with about a dozen tags and lengths. */
const NUMBERS_MAX = 5_000;
/** 64 events with the longest names and reasons. */
const BYTES_MAX = 512 * 1024;

/**
 * Returns the events of a message, or null when it cannot be read, which a redelivery would not change, or is no message of a conductor: a
 * compromised cell could fill the memory of all apis and schedulers with messages of a million empty events.
 */
export function readCellEvents(data: Uint8Array): readonly CellEvent[] | null {
  if (data.length > BYTES_MAX) return null;
  try {
    const first = decodeBounded(CellEvent, data, NUMBERS_MAX);
    return [first, ...first.more];
  } catch {
    return null;
  }
}
