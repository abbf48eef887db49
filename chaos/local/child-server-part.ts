import type { Part, Role } from "../chaos-cloud.ts";

/** The common parts of LocalNats and LocalRedis. */
interface ChildServer {
  readonly pid: number;
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Resolves when the current server process dies. */
  readonly died: Promise<string>;
}

/** A nats-server or redis-server as a part of a local cloud. */
export class ChildServerPart implements Part {
  readonly name: string;
  readonly role: Role;
  readonly cell: string | null;
  readonly #server: ChildServer;
  #running = true;
  /** How the server last ended by itself. */
  lastWords = "";

  constructor(what: { readonly name: string; readonly role: Role; readonly cell: string | null }, server: ChildServer) {
    this.name = what.name;
    this.role = what.role;
    this.cell = what.cell;
    this.#server = server;
    this.#watch();
  }

  get running(): boolean {
    return this.#running;
  }

  get pid(): number {
    return this.#server.pid;
  }

  async kill(): Promise<void> {
    this.#running = false;
    await this.#server.kill();
  }

  async start(): Promise<void> {
    await this.#server.restart();
    this.#running = true;
    this.#watch();
  }

  async pause(): Promise<void> {
    process.kill(this.#server.pid, "SIGSTOP");
  }

  async resume(): Promise<void> {
    process.kill(this.#server.pid, "SIGCONT");
  }

  #watch(): void {
    void this.#server.died.then((how) => {
      this.#running = false;
      this.lastWords = how;
    });
  }
}
