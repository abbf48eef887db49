import type { AgentMessage, ConductorMessage } from "../../proto/gen/berth/agent.ts";
import type { AgentPermit } from "./agent-permit.ts";

/** The reasons with which the two ends close their streams when they stop. */
export const AGENT_STOPS = "the agent stops";
export const CONDUCTOR_STOPS = "the conductor stops";

/** Whether a stream was closed because one of its ends was stopped in order. */
export function isOrderlyEnd(reason: string): boolean {
  return reason === AGENT_STOPS || reason === CONDUCTOR_STOPS;
}

/**
 * One end of a stream of messages. Messages sent in one turn of the event loop travel in one frame. The order is kept. Messages that were
 * sent shortly before a close may be lost, and `send` does nothing after the close.
 */
export interface MessageStream<Out, In> {
  send(message: Out): void;
  /** Called with each frame's messages, in order. There is one handler, which must be set before the first turn ends. */
  onMessages(handler: (messages: readonly In[]) => void): void;
  /** Called once, whichever end closed the stream. */
  onClose(handler: (reason: string) => void): void;
  close(reason: string): void;
  readonly closed: boolean;
}

/** A conductor's end of the stream to one agent process. */
export type AgentStream = MessageStream<ConductorMessage, AgentMessage>;
/** An agent's end of the stream to one conductor. */
export type ConductorStream = MessageStream<AgentMessage, ConductorMessage>;

/** Connects an agent to conductors: the gRPC client, or the in-process twin. */
export interface ConductorDialer {
  /** Returns a stream at once. If the address cannot be reached, the stream closes with the reason. */
  dial(address: string): ConductorStream;
  /** Closes the dialer's streams. */
  close(): void;
}

/** Accepts the agents' streams: the gRPC server, or the in-process twin. */
export interface AgentListener {
  /** `permit` has the agent and hosts that the certificate allows. It is null when the link has no certificates, so that any agent is accepted. */
  onAgent(handler: (stream: AgentStream, permit: AgentPermit | null) => void): void;
  /** The address that agents can dial, known once the listener is listening. */
  readonly address: string;
}
