import { cellEventsForApi } from "../../../adapters/nats/streams.ts";
import { CellEvent, EventKind } from "../../../proto/gen/berth/cell.ts";
import type { BusMessage, Subscription } from "../../../runtime/bus.ts";
import type { ApiEvents } from "../events.ts";
import { canonicalUuid } from "../http/canonical-uuid.ts";
import type { CellPort } from "../ports.ts";
import type { DeletionMarker } from "./mark-deleted.ts";

const IN_FLIGHT_MAX = 1000;
const RETRY_MS = 2_000;

/**
 * Reads one cell's events about deleted servers: each is noted in the API database, then the message is acknowledged. The note only
 * counts for servers of this cell. Every other event is for somebody else. A server whose event was lost is noted by the schedulers'
 * sweep.
 */
export function consumeCellEvents(
  cell: CellPort,
  deps: { readonly marker: DeletionMarker; readonly events: ApiEvents },
): Promise<Subscription> {
  return cell.bus.consume(cellEventsForApi, { maxInFlight: IN_FLIGHT_MAX }, (message) => {
    const event = decode(message.data);
    // A uuid that is none would make the note fail for all of its batch, again and again.
    if (
      event === null ||
      (event.kind === EventKind.EVENT_KIND_SERVER_DELETED && canonicalUuid(event.serverUuid) === null)
    ) {
      deps.events.eventMalformed(cell.name);
      message.ack();
      return;
    }
    if (event.kind === EventKind.EVENT_KIND_SERVER_DELETED) noteDeleted(cell.name, event, message, deps);
    else message.ack();
  });
}

function noteDeleted(
  cell: string,
  event: CellEvent,
  message: BusMessage,
  deps: { readonly marker: DeletionMarker; readonly events: ApiEvents },
): void {
  deps.marker.mark(cell, event.serverUuid).then(
    () => message.ack(),
    (error: unknown) => {
      deps.events.markFailed(event.serverUuid, error);
      message.retry(RETRY_MS);
    },
  );
}

/** Null: not a message of ours; repeating it would not help. */
function decode(data: Uint8Array): CellEvent | null {
  try {
    return CellEvent.decode(data);
  } catch {
    return null;
  }
}
