import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { inboxPrefixOf } from "../../adapters/nats/streams.ts";

const TRIES_MAX = 10;

/** A bare connection with the user of `url`, for requests that the services' own bus does not make. */
export async function connectRaw(url: string, options: { readonly timeoutMs?: number } = {}): Promise<NatsConnection> {
  const { host, username, password } = new URL(url);
  for (let tries = 1; ; tries += 1) {
    try {
      return await connect({
        servers: host,
        user: username,
        pass: password,
        inboxPrefix: inboxPrefixOf(username),
        reconnect: false,
        timeout: options.timeoutMs ?? 10_000,
        noAsyncTraces: true,
      });
    } catch (error) {
      // The server gives a client two seconds to say who it is. On a busy machine that is too short.
      if (tries === TRIES_MAX || !/authentication timeout/i.test((error as Error).message)) throw error;
    }
  }
}

export interface StreamState {
  /** Messages that wait, or that are delivered and not acknowledged yet. */
  readonly messages: number;
  /** The sequence number of the last message that was ever stored. */
  readonly lastSequence: number;
}

/** The content of a stream as the server reports it. */
export async function streamState(url: string, stream: string): Promise<StreamState> {
  const connection = await connectRaw(url);
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const { state } = await manager.streams.info(stream);
    return { messages: state.messages, lastSequence: state.last_seq };
  } finally {
    await connection.close();
  }
}
