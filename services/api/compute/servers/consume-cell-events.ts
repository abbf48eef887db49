import { cellEventsForApi } from "../../../../adapters/nats/streams.ts";
import { CellEvent, EventKind } from "../../../../proto/gen/berth/cell.ts";
import type { BusMessage, Subscription } from "../../../../runtime/bus.ts";
import type { ApiEvents } from "../../events.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { CellPort } from "../../ports.ts";
import type { DeletionMarker } from "./deletion-marker.ts";

const IN_FLIGHT_MAX = 1000;
const RETRY_MS = 2_000;

/**
 * Reads one cell's events about deleted servers. Each deletion is noted in the API database before its message is acknowledged. The note
 * has no effect on servers of other cells. Events of other kinds are ignored here. If an event is lost, the schedulers' sweep notes the
 * deletion.
 */
export function consumeCellEvents(
  cell: CellPort,
  deps: { readonly marker: DeletionMarker; readonly events: ApiEvents },
): Promise<Subscription> {
  return cell.bus.consume(cellEventsForApi, { maxInFlight: IN_FLIGHT_MAX }, (message) => {
    const event = decode(message.data);
    // An invalid uuid would make the write fail for its whole batch, again and again.
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

/** Returns null for a message that cannot be decoded, which a redelivery would not change. */
function decode(data: Uint8Array): CellEvent | null {
  try {
    return CellEvent.decode(data);
  } catch {
    return null;
  }
}
