import { rmSync } from "node:fs";
import { startChildServer } from "../../runtime/child-server.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";

/** A redis-server on 127.0.0.1 that keeps nothing on disk. */
export interface LocalRedis {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Kills the server, as a crash would. Its data is lost. */
  kill(): Promise<void>;
  /** Starts the server again, empty, on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves with the cause when the server that runs at this moment ends without having been stopped. */
  readonly died: Promise<string>;
}

/** Starts a redis-server (from the PATH) and resolves when it answers. Rejects when none is installed or it does not start. */
export async function startLocalRedis(options: { readonly port?: number } = {}): Promise<LocalRedis> {
  const dir = makeOwnedDir("redis");
  const start = (port: number | undefined) =>
    startChildServer({
      command: "redis-server",
      greeting: "PING\r\n",
      answer: "+PONG",
      ...(port === undefined ? {} : { port }),
      args: (chosen) => [
        "--port",
        String(chosen),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        dir,
      ],
    });
  let server = await start(options.port).catch((error: unknown) => {
    rmSync(dir, { recursive: true, force: true });
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
    url: `redis://127.0.0.1:${port}`,
    kill: () => server.kill(),
    restart: async () => {
      server = await start(port);
    },
    stop: async () => {
      await server.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
