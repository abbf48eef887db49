import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startChildServer } from "../../runtime/child-server.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { natsUserOfApi, natsUserOfApiIn, natsUserOfConductors } from "./streams.ts";

/** The parameters of a local server's configuration; `deploy/nats-config.ts` turns them into text. */
export interface LocalNatsLayout {
  readonly apiPassword: string;
  readonly cells: readonly {
    readonly name: string;
    readonly apiPassword: string;
    readonly conductorPassword: string;
  }[];
  readonly storeDir: string;
  readonly host: string;
  readonly port: number;
}

export interface LocalNatsOptions {
  readonly cells: readonly string[];
  /** Usually `natsConfig`. */
  readonly writeConfig: (layout: LocalNatsLayout) => string;
  /** Directory for configuration and streams. A given directory is kept; otherwise a temporary one is made and removed with the server. */
  readonly dir?: string;
  /** A free port by default. */
  readonly port?: number;
}

/** A nats-server on 127.0.0.1 with the accounts of the API tier and of the cells. */
export interface LocalNats {
  readonly port: number;
  readonly pid: number;
  readonly apiUrl: string;
  cellApiUrl(cell: string): string;
  conductorUrl(cell: string): string;
  /** Kills the server, as a crash would. The streams stay on disk. */
  kill(): Promise<void>;
  /** Removes all streams after `kill`, as when the disk is replaced. */
  wipe(): void;
  /** Starts the server again after `kill`, on the same port and with the same streams. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves with the cause when the server that runs at this moment ends without having been stopped. */
  readonly died: Promise<string>;
}

/** Starts a nats-server (from the PATH) and resolves when it answers. Rejects when none is installed or it does not start. */
export async function startLocalNats(options: LocalNatsOptions): Promise<LocalNats> {
  const dir = options.dir ?? makeOwnedDir("nats");
  mkdirSync(dir, { recursive: true });
  const passwords = new Map<string, string>();
  const passwordOf = (user: string) => {
    const known = passwords.get(user) ?? randomBytes(16).toString("hex");
    passwords.set(user, known);
    return known;
  };
  const start = (port: number | undefined) =>
    startChildServer({
      command: "nats-server",
      answer: "INFO ",
      ...(port === undefined ? {} : { port }),
      args(chosen) {
        const configFile = join(dir, "nats.conf");
        const cells = options.cells.map((name) => ({
          name,
          apiPassword: passwordOf(natsUserOfApiIn(name)),
          conductorPassword: passwordOf(natsUserOfConductors(name)),
        }));
        const layout = {
          apiPassword: passwordOf(natsUserOfApi),
          cells,
          storeDir: join(dir, "streams"),
          host: "127.0.0.1",
          port: chosen,
        };
        writeFileSync(configFile, options.writeConfig(layout), { mode: 0o600 });
        return ["-c", configFile];
      },
    });
  const urlOf = (user: string, port: number) => `nats://${user}:${passwordOf(user)}@127.0.0.1:${port}`;
  let server = await start(options.port).catch((error: unknown) => {
    if (options.dir === undefined) rmSync(dir, { recursive: true, force: true });
    throw error;
  });
  const { port } = server;
  return {
    port,
    get pid() {
      return server.pid;
    },
    get died() {
      return server.died;
    },
    apiUrl: urlOf(natsUserOfApi, port),
    cellApiUrl: (cell) => urlOf(natsUserOfApiIn(cell), port),
    conductorUrl: (cell) => urlOf(natsUserOfConductors(cell), port),
    kill: () => server.kill(),
    wipe: () => rmSync(join(dir, "streams"), { recursive: true, force: true }),
    restart: async () => {
      server = await start(port);
    },
    stop: async () => {
      await server.stop();
      if (options.dir === undefined) rmSync(dir, { recursive: true, force: true });
    },
  };
}
