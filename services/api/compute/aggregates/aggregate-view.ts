import type { AggregateRecord } from "../../../../core/scheduling/aggregate-record.ts";
import { zoneOfMetadata } from "../../../../core/stores/api/aggregate-store.ts";
import { isoMicroseconds } from "../../http/times.ts";

/** From this microversion on aggregates show the uuid that placement knows them by. */
const UUID_FROM_MINOR = 41;

/** The answer to `POST /os-aggregates`, without hosts and metadata. Source: Nova's api-ref, "Host aggregates". */
export function newAggregateView(aggregate: AggregateRecord, minor: number) {
  return {
    id: aggregate.id,
    ...(minor >= UUID_FROM_MINOR && { uuid: aggregate.uuid }),
    name: aggregate.name,
    availability_zone: zoneOfMetadata(aggregate.metadata),
    created_at: isoMicroseconds(aggregate.createdAtMs),
    updated_at: aggregate.updatedAtMs === null ? null : isoMicroseconds(aggregate.updatedAtMs),
    deleted: false,
    deleted_at: null,
  };
}

export function aggregateView(aggregate: AggregateRecord, minor: number) {
  return {
    ...newAggregateView(aggregate, minor),
    hosts: [...aggregate.hosts],
    metadata: { ...aggregate.metadata },
  };
}
