import { type AgentPermit, helloRefusal, isCellWide } from "../../core/agent/agent-permit.ts";
import { type AgentListener, type AgentStream, CONDUCTOR_STOPS } from "../../core/agent/link.ts";
import type { AgentMessage, Hello, HostState } from "../../proto/gen/berth/agent.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import { helloFault, otherCell } from "./hello-fault.ts";

const SILENT_HEARTBEATS = 3;

export type AgentReport = Exclude<NonNullable<AgentMessage["body"]>, { $case: "hello" | "heartbeat" }>;

/** An agent process that has said hello, with its hosts. */
export interface AgentConnection {
  readonly agentId: string;
  readonly stream: AgentStream;
  /** The hosts that the hello named, by host name. */
  readonly hosts: ReadonlyMap<string, HostState>;
  /** The number of this connection among all that this conductor has accepted. */
  readonly arrival: number;
}

export interface RegistryHandlers {
  /** Called when the connection's hosts have become reachable. */
  onArrived(connection: AgentConnection): void;
  onReport(report: AgentReport, connection: AgentConnection): void;
  /** Called when the connection is gone. `hosts` are its hosts that no other connection has taken over. */
  onLost(connection: AgentConnection, hosts: readonly string[]): void;
}

/**
 * Records which agent's stream carries which host. An agent that dials again replaces its old stream. A hello is refused when the agent's
 * certificate does not allow it, or when it names a host of another cell, or one that a live connection of another agent carries. A connection lives until its
 * stream closes, because the agent's process ended or was silent for three heartbeats. So an agent that comes back under another id waits
 * at most that long. Reports count only for hosts that their connection carries.
 */
export class AgentRegistry {
  readonly #clock: Clock;
  readonly #heartbeatMs: number;
  readonly #conductorId: string;
  readonly #cell: string;
  readonly #allowCellWide: boolean;
  readonly #events: ConductorEvents;
  readonly #handlers: RegistryHandlers;
  readonly #byHost = new Map<string, AgentConnection>();
  readonly #byAgent = new Map<string, AgentConnection>();
  /** When each open stream was last heard, by the monotonic clock. Includes streams that have not said hello. */
  readonly #heardAtMs = new Map<AgentStream, number>();
  /** When each disconnected host was lost, by the monotonic clock. */
  readonly #lostAtMs = new Map<string, number>();
  #arrivals = 0;
  #timer: Timer | null = null;
  #watchedAtMs = 0;

  constructor(options: {
    readonly clock: Clock;
    readonly heartbeatMs: number;
    readonly conductorId: string;
    /** The conductor's cell. */
    readonly cell: string;
    /** Whether to accept agents whose certificate names no agent. */
    readonly allowCellWideCertificates: boolean;
    readonly events: ConductorEvents;
    readonly handlers: RegistryHandlers;
  }) {
    this.#clock = options.clock;
    this.#heartbeatMs = options.heartbeatMs;
    this.#conductorId = options.conductorId;
    this.#cell = options.cell;
    this.#allowCellWide = options.allowCellWideCertificates;
    this.#events = options.events;
    this.#handlers = options.handlers;
  }

  listen(listener: AgentListener): void {
    this.#watchSilence();
    listener.onAgent((stream, permit) => this.#accept(stream, permit));
  }

  /** The stream that reaches the host, or null when the host is not connected. */
  streamOf(host: string): AgentStream | null {
    return this.#byHost.get(host)?.stream ?? null;
  }

  /** How many connections were accepted so far. */
  get arrivals(): number {
    return this.#arrivals;
  }

  /** The connection that reaches the host, or null when the host is not connected. */
  connectionOf(host: string): AgentConnection | null {
    return this.#byHost.get(host) ?? null;
  }

  /** Milliseconds since the host was lost. Null when the host is connected or never was. */
  unconnectedMs(host: string): number | null {
    const lostAtMs = this.#lostAtMs.get(host);
    return lostAtMs === undefined ? null : this.#clock.monotonic() - lostAtMs;
  }

  /** Connections of agents that were heard within the last heartbeats. */
  connections(): readonly AgentConnection[] {
    return [...this.#byAgent.values()];
  }

  /** Whether this connection is the one that reaches the host now. */
  carries(connection: AgentConnection, host: string): boolean {
    return this.#byHost.get(host) === connection;
  }

  close(): void {
    this.#timer?.cancel();
    for (const stream of [...this.#heardAtMs.keys()]) stream.close(CONDUCTOR_STOPS);
  }

  #accept(stream: AgentStream, permit: AgentPermit | null): void {
    let connection: AgentConnection | null = null;
    this.#heardAtMs.set(stream, this.#clock.monotonic());
    stream.onMessages((messages) => {
      this.#heardAtMs.set(stream, this.#clock.monotonic());
      for (const { body } of messages) {
        if (body === undefined || stream.closed) continue;
        if (body.$case === "heartbeat") stream.send({ body: { $case: "heartbeat", value: {} } });
        else if (body.$case === "hello" && connection !== null) stream.close("a stream may send only one hello");
        else if (body.$case === "hello") connection = this.#greet(stream, permit, body.value);
        else if (connection !== null) this.#report(body, connection);
        else stream.close("the first message must be a hello");
      }
    });
    stream.onClose((reason) => {
      this.#heardAtMs.delete(stream);
      if (connection !== null) this.#lose(connection, reason);
    });
  }

  /** Returns null when the hello is refused. The stream is then closed with the reason. */
  #greet(stream: AgentStream, permit: AgentPermit | null, hello: Hello): AgentConnection | null {
    const refused = this.#refusal(permit, hello);
    if (refused === null) {
      if (permit !== null && isCellWide(permit)) this.#events.cellWideCertificate(hello.agentId);
      return this.#welcome(stream, hello);
    }
    this.#events.agentRefused(hello.agentId, refused);
    stream.close(refused);
    return null;
  }

  #refusal(permit: AgentPermit | null, hello: Hello): string | null {
    const { agentId } = hello;
    const fault = helloFault(hello);
    if (fault !== null) return fault;
    const hosts = hello.hosts.map(({ host }) => host);
    const isOpen = permit === null || (this.#allowCellWide && isCellWide(permit));
    const refused = isOpen ? null : helloRefusal(permit, { agentId, hosts });
    if (refused !== null) return refused;
    const elsewhere = hello.hosts.find(({ cell = this.#cell }) => cell !== this.#cell);
    if (elsewhere !== undefined) return otherCell(elsewhere, this.#cell);
    for (const host of hosts) {
      const holder = this.#byHost.get(host);
      if (holder === undefined || holder.agentId === agentId || holder.stream.closed) continue;
      return `host ${host} belongs to agent ${holder.agentId}, which is connected: stop that agent, or remove the host from the hosts of one of the two agents`;
    }
    return null;
  }

  #report(report: AgentReport, connection: AgentConnection): void {
    const { host } = report.value;
    // The agent waits for a verdict on each tree, so the TreeKeeper itself refuses trees of other hosts.
    if (report.$case === "tree" || this.carries(connection, host)) this.#handlers.onReport(report, connection);
    else this.#events.reportDropped(connection.agentId, host, report.$case);
  }

  #welcome(stream: AgentStream, hello: Hello): AgentConnection {
    this.#arrivals += 1;
    const connection: AgentConnection = {
      arrival: this.#arrivals,
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
    if (before !== undefined && before.stream !== stream) before.stream.close("the agent connected again");
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

  /** Closes silent streams. After this process itself stood still, messages may be waiting to be read, so all streams get more time. */
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
