import type { AgentMessage, ConductorMessage } from "../../proto/gen/berth/agent.ts";
import type { AgentPermit } from "./agent-permit.ts";

/**
 * One end of a stream of messages. Messages sent in one turn of the event loop travel in one frame. Order is kept; what was
 * sent before a close may be lost. `send` after the close does nothing.
 */
export interface MessageStream<Out, In> {
  send(message: Out): void;
  /** Called with each frame's messages, in order; one handler, set before the first turn ends. */
  onMessages(handler: (messages: readonly In[]) => void): void;
  /** Called once, whoever closed it. */
  onClose(handler: (reason: string) => void): void;
  close(reason: string): void;
  readonly closed: boolean;
}

/** A conductor's end of the stream to one agent process. */
export type AgentStream = MessageStream<ConductorMessage, AgentMessage>;
/** An agent's end of the stream to one conductor. */
export type ConductorStream = MessageStream<AgentMessage, ConductorMessage>;

/** Where conductors are dialled: the gRPC client, or the in-process twin. */
export interface ConductorDialer {
  /** A stream at once; if the address cannot be reached, it closes with the reason. */
  dial(address: string): ConductorStream;
  /** Closes its streams. */
  close(): void;
}

/** Where agents arrive: the gRPC server, or the in-process twin. */
export interface AgentListener {
  /** `permit`: what the agent's certificate allows; null: the link has no certificates, so any agent may come. */
  onAgent(handler: (stream: AgentStream, permit: AgentPermit | null) => void): void;
  /** Address that agents can dial, once listening. */
  readonly address: string;
}
