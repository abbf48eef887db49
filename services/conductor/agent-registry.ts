import type { AgentListener, AgentStream } from "../../core/agent/link.ts";
import type { AgentMessage, Hello, HostState } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";

const SILENT_HEARTBEATS = 3;

export type AgentReport = Exclude<NonNullable<AgentMessage["body"]>, { $case: "hello" | "heartbeat" }>;

/** One agent process that said hello, and its hosts. */
export interface AgentConnection {
  readonly agentId: string;
  readonly stream: AgentStream;
  /** By name, as the hello had them. */
  readonly hosts: ReadonlyMap<string, HostState>;
}

export interface RegistryHandlers {
  /** The connection's hosts can be reached from now on. */
  onArrived(connection: AgentConnection): void;
  onReport(report: AgentReport, connection: AgentConnection): void;
  /** The connection is gone; `hosts` are those of it that no other connection has taken over. */
  onLost(connection: AgentConnection, hosts: readonly string[]): void;
}

/**
 * Which agent's stream carries which host. The latest hello wins: an agent that dials again replaces its old stream, and
 * a host that another agent claims goes over to it.
 */
export class AgentRegistry {
  readonly #clock: Clock;
  readonly #heartbeatMs: number;
  readonly #conductorId: string;
  readonly #events: ConductorEvents;
  readonly #handlers: RegistryHandlers;
  readonly #byHost = new Map<string, AgentConnection>();
  readonly #byAgent = new Map<string, AgentConnection>();
  /** When each open stream was last heard of, by the monotonic clock; streams without a hello, too. */
  readonly #heardAtMs = new Map<AgentStream, number>();
  /** When each host that was connected was lost, by the monotonic clock. */
  readonly #lostAtMs = new Map<string, number>();
  #timer: Timer | null = null;
  #watchedAtMs = 0;

  constructor(options: {
    readonly clock: Clock;
    readonly heartbeatMs: number;
    readonly conductorId: string;
    readonly events: ConductorEvents;
    readonly handlers: RegistryHandlers;
  }) {
    this.#clock = options.clock;
    this.#heartbeatMs = options.heartbeatMs;
    this.#conductorId = options.conductorId;
    this.#events = options.events;
    this.#handlers = options.handlers;
  }

  listen(listener: AgentListener): void {
    this.#watchSilence();
    listener.onAgent((stream) => this.#accept(stream));
  }

  /** The stream that reaches the host; null: it is not connected. */
  streamOf(host: string): AgentStream | null {
    return this.#byHost.get(host)?.stream ?? null;
  }

  /** How long ago the host was lost; null: it is connected, or never was. */
  unconnectedMs(host: string): number | null {
    const lostAtMs = this.#lostAtMs.get(host);
    return lostAtMs === undefined ? null : this.#clock.monotonic() - lostAtMs;
  }

  /** Agents that are connected, which means that they were heard of lately. */
  connections(): readonly AgentConnection[] {
    return [...this.#byAgent.values()];
  }

  /** Whether the connection is the one that reaches the host now. */
  carries(connection: AgentConnection, host: string): boolean {
    return this.#byHost.get(host) === connection;
  }

  close(): void {
    this.#timer?.cancel();
    for (const stream of [...this.#heardAtMs.keys()]) stream.close("the conductor stops");
  }

  #accept(stream: AgentStream): void {
    let connection: AgentConnection | null = null;
    this.#heardAtMs.set(stream, this.#clock.monotonic());
    stream.onMessages((messages) => {
      this.#heardAtMs.set(stream, this.#clock.monotonic());
      for (const { body } of messages) {
        if (body === undefined || stream.closed) continue;
        if (body.$case === "heartbeat") stream.send({ body: { $case: "heartbeat", value: {} } });
        else if (body.$case === "hello") connection = this.#welcome(stream, body.value);
        else if (connection !== null) this.#handlers.onReport(body, connection);
        else stream.close("the first message must be a hello");
      }
    });
    stream.onClose((reason) => {
      this.#heardAtMs.delete(stream);
      if (connection !== null) this.#lose(connection, reason);
    });
  }

  #welcome(stream: AgentStream, hello: Hello): AgentConnection {
    const connection: AgentConnection = {
      agentId: hello.agentId,
      stream,
      hosts: new Map(hello.hosts.map((state) => [state.host, state])),
    };
    const before = this.#byAgent.get(hello.agentId);
    this.#byAgent.set(hello.agentId, connection);
    for (const host of connection.hosts.keys()) {
      this.#byHost.set(host, connection);
      this.#lostAtMs.delete(host);
    }
    if (before !== undefined && before.stream !== stream) before.stream.close("the agent dialled again");
    stream.send({
      body: { $case: "welcome", value: { conductorId: this.#conductorId, heartbeatMs: this.#heartbeatMs } },
    });
    this.#events.agentArrived(hello.agentId, connection.hosts.size);
    this.#handlers.onArrived(connection);
    return connection;
  }

  #lose(connection: AgentConnection, reason: string): void {
    const hosts = [...connection.hosts.keys()].filter((host) => this.carries(connection, host));
    for (const host of hosts) {
      this.#byHost.delete(host);
      this.#lostAtMs.set(host, this.#clock.monotonic());
    }
    if (this.#byAgent.get(connection.agentId) === connection) this.#byAgent.delete(connection.agentId);
    this.#events.agentLost(connection.agentId, reason);
    this.#handlers.onLost(connection, hosts);
  }

  /** Closes silent streams; but when this process itself stood still, their messages may wait to be read: all get more time. */
  #watchSilence(): void {
    const nowMs = this.#clock.monotonic();
    const stoodStill = this.#watchedAtMs > 0 && nowMs - this.#watchedAtMs > this.#heartbeatMs * 2;
    this.#watchedAtMs = nowMs;
    for (const [stream, heardAtMs] of this.#heardAtMs) {
      if (stoodStill) this.#heardAtMs.set(stream, nowMs);
      else if (nowMs - heardAtMs > this.#heartbeatMs * SILENT_HEARTBEATS) stream.close("the agent was silent");
    }
    this.#timer = this.#clock.setTimer(this.#heartbeatMs, () => this.#watchSilence());
  }
}
