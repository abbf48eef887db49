import { readCellEvents } from "../../../../adapters/nats/read-cell-events.ts";
import { cellEventsForApi } from "../../../../adapters/nats/streams.ts";
import { type CellEvent, EventKind } from "../../../../proto/gen/berth/cell.ts";
import type { BusMessage, Subscription } from "../../../../runtime/bus.ts";
import type { ApiEvents } from "../../events.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { CellPort } from "../../ports.ts";
import type { DeletionMarker } from "./deletion-marker.ts";

const IN_FLIGHT_MAX = 1000;
const RETRY_MS = 2_000;

/**
 * Reads one cell's events about deleted and failed servers. All of a message are noted in the API database before it is acknowledged. The note
 * of a deletion has no effect on servers of other cells. Events of other kinds are ignored here. If an event is lost, the schedulers' sweep notes the
 * deletion.
 */
export function consumeCellEvents(
  cell: CellPort,
  deps: { readonly marker: DeletionMarker; readonly events: ApiEvents },
): Promise<Subscription> {
  return cell.bus.consume(cellEventsForApi, { maxInFlight: IN_FLIGHT_MAX }, (message) => {
    const events = readCellEvents(message.data);
    const deleted = events?.filter(({ kind }) => kind === EventKind.EVENT_KIND_SERVER_DELETED) ?? [];
    // An invalid uuid would make the write fail for its whole batch, again and again.
    const valid = deleted.filter(({ serverUuid }) => canonicalUuid(serverUuid) !== null);
    if (events === null || valid.length < deleted.length) deps.events.eventMalformed(cell.name);
    const failed = (events ?? [])
      .filter(
        ({ kind, serverUuid }) => kind === EventKind.EVENT_KIND_SERVER_ERROR && canonicalUuid(serverUuid) !== null,
      )
      .map(({ serverUuid }) => serverUuid);
    if (valid.length + failed.length > 0) noteEnds(cell.name, { deleted: valid, failed }, message, deps);
    else message.ack();
  });
}

function noteEnds(
  cell: string,
  { deleted, failed }: { readonly deleted: readonly CellEvent[]; readonly failed: readonly string[] },
  message: BusMessage,
  deps: { readonly marker: DeletionMarker; readonly events: ApiEvents },
): void {
  const marks = deleted.map(({ serverUuid }) => deps.marker.mark(cell, serverUuid));
  Promise.all([...marks, deps.marker.noteFailed(failed)]).then(
    () => message.ack(),
    (error: unknown) => {
      deps.events.markFailed(deleted[0]?.serverUuid ?? failed[0] ?? "", error);
      message.retry(RETRY_MS);
    },
  );
}
