import type { Socket } from "node:net";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { openUnixSocket } from "./open-unix-socket.ts";
import { QmpError } from "./qmp-error.ts";
import { QmpLines } from "./qmp-lines.ts";

/** Nothing is done to a guest whose QEMU is silent, until an order ends that QEMU. */
const ADVICE =
  "The guest is left as it is; if QEMU stays silent, a hard reboot of the server ends it and starts another";
/** QEMU answers within milliseconds, but not while it writes to a slow disk. */
const ANSWER_MS = 20_000;

type Answer = Readonly<Record<string, unknown>>;

/** Something that happened in QEMU, such as `SHUTDOWN`. */
export interface QmpEvent {
  readonly name: string;
  readonly data: Answer;
}

interface Waiting {
  readonly command: string;
  resolve(value: unknown): void;
  reject(error: QmpError): void;
}

/**
 * A connection to the monitor of one QEMU, over a unix socket. QEMU serves one client at a time on such a socket. A second client waits without
 * an error until the first one has gone.
 */
export class QmpClient {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #lines = new QmpLines();
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #greeted = Promise.withResolvers<void>();
  #lastId = 0;
  #isClosed = false;

  private constructor(socket: Socket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
    // Nobody awaits this promise when the connection ends early, and its rejection must not end the process.
    this.#greeted.promise.catch(() => undefined);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", (error) => this.#end(new QmpError("lost", `QEMU's monitor: ${error.message}`)));
    socket.on("close", () => this.#end(new QmpError("lost", "QEMU closed its monitor")));
  }

  /**
   * Connects and negotiates. `path` may be longer than the 107 bytes that a socket's address has room for. Rejects with a QmpError: `lost`
   * when nobody listens there, `silent` when another client has the connection or QEMU accepts none.
   */
  static async connect(path: string, { clock = systemClock, timeoutMs = ANSWER_MS } = {}): Promise<QmpClient> {
    const client = new QmpClient(await openUnixSocket(path).catch(notOpened), clock);
    try {
      await client.#within(client.#greeted.promise, timeoutMs, "the greeting");
      await client.execute("qmp_capabilities", {}, timeoutMs);
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  /** Resolves when the connection has ended, for whatever reason. Never rejects. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Calls `listener` with every event from now on. Returns a function that ends it. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with what the command returns. Rejects with a QmpError. */
  async execute(command: string, args: object = {}, timeoutMs = ANSWER_MS): Promise<unknown> {
    if (this.#isClosed) throw new QmpError("lost", `QEMU's monitor is closed: ${command} was not sent`);
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { command, resolve, reject }));
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    try {
      return await this.#within(answer, timeoutMs, command);
    } finally {
      this.#waiting.delete(id);
    }
  }

  close(): void {
    this.#end(new QmpError("lost", "the connection was closed"));
  }

  #within<Value>(promise: Promise<Value>, timeoutMs: number, what: string): Promise<Value> {
    return withDeadline(promise, timeoutMs, what, this.#clock).catch((error: unknown) => {
      if (error instanceof QmpError) throw error;
      throw new QmpError("silent", `QEMU did not answer within ${timeoutMs} ms: ${what}. ${ADVICE}`);
    });
  }

  #take(chunk: Buffer): void {
    try {
      for (const message of this.#lines.take(chunk)) this.#hear(message);
    } catch (error) {
      this.#end(error instanceof QmpError ? error : new QmpError("malformed", String(error)));
    }
  }

  #hear(message: Answer): void {
    if (message.QMP !== undefined) this.#greeted.resolve();
    else if (typeof message.event === "string") {
      const event = { name: message.event, data: (message.data ?? {}) as Answer };
      for (const listener of [...this.#listeners]) listener(event);
    } else if (typeof message.id === "number") {
      const waiting = this.#waiting.get(message.id);
      if (waiting === undefined) return;
      if (message.error === undefined) waiting.resolve(message.return);
      else waiting.reject(new QmpError("refused", `${waiting.command}: ${describe(message.error)}`));
    }
  }

  #end(error: QmpError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#greeted.reject(error);
    for (const { reject } of [...this.#waiting.values()]) reject(error);
    this.#listeners.clear();
    this.#closed.resolve();
  }
}

function describe(error: unknown): string {
  const { desc } = error as { readonly desc?: unknown };
  return typeof desc === "string" ? desc.slice(0, 500) : "QEMU gave no reason";
}

/** Errors of a socket that nobody serves: it is not there, is left over, or was closed while the client waited in its queue. */
const NOBODY_THERE: ReadonlySet<string> = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET"]);

/** A QEMU that hangs refuses further clients with EAGAIN once its queue is full, and it may still run its guest. */
function notOpened({ code = "", message }: NodeJS.ErrnoException): never {
  throw new QmpError(NOBODY_THERE.has(code) ? "lost" : "silent", `QEMU's monitor: ${message}`);
}
