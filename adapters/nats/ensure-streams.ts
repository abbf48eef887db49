import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { ConsumerSpec, StreamSpec } from "../../runtime/bus.ts";
import { toBusError } from "./nats-errors.ts";

const nsPerMs = 1_000_000;
const dedupWindowMs = 120_000;
/** The server's codes for "exists with another configuration". */
const streamExists = 10_058;
const consumerExists: ReadonlySet<number> = new Set([10_013, 10_105, 10_148]);

/**
 * JetStream's administration client. It is made without asking the server about the account, because a user with few permissions may not
 * ask that.
 */
export function managerOf(connection: NatsConnection, timeoutMs: number): Promise<JetStreamManager> {
  return jetstreamManager(connection, { checkAPI: false, timeout: timeoutMs });
}

/**
 * Creates the streams and consumers, or updates them to match the specs. Consumers that no spec names are left alone. Creating an identical
 * stream succeeds, so concurrent callers do no harm. Rejects with a `BusError`.
 */
export async function ensureStreams(
  connection: NatsConnection,
  specs: readonly StreamSpec[],
  timeoutMs: number,
): Promise<void> {
  const manager = await managerOf(connection, timeoutMs);
  for (const spec of specs) {
    try {
      await ensureStream(manager, spec);
      for (const consumer of spec.consumers) await ensureConsumer(manager, spec.stream, consumer);
    } catch (error) {
      throw toBusError(spec.stream, error);
    }
  }
}

async function ensureStream(manager: JetStreamManager, spec: StreamSpec): Promise<void> {
  const windowMs = spec.maxAgeMs === 0 ? dedupWindowMs : Math.min(dedupWindowMs, spec.maxAgeMs);
  const config = {
    subjects: [...spec.subjects],
    retention: spec.retention === "work" ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
    max_age: spec.maxAgeMs * nsPerMs,
    // Not `max_bytes`: the server would reserve that much for each stream, and refuse to create one when its disk is smaller.
    max_msgs: spec.maxMessages ?? -1,
    duplicate_window: windowMs * nsPerMs,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    ...(spec.replicas === undefined ? {} : { num_replicas: spec.replicas }),
  };
  try {
    await manager.streams.add({ name: spec.stream, ...config });
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== streamExists) throw error;
    await manager.streams.update(spec.stream, config);
  }
}

async function ensureConsumer(manager: JetStreamManager, stream: string, spec: ConsumerSpec): Promise<void> {
  const changeable = { ack_wait: spec.ackWaitMs * nsPerMs, max_ack_pending: spec.maxAckPending };
  try {
    await manager.consumers.add(stream, {
      durable_name: spec.name,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ...changeable,
    });
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || !consumerExists.has(error.code)) throw error;
    await manager.consumers.update(stream, spec.name, changeable);
  }
}
