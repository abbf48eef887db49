import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChildServer } from "../../runtime/child-server.ts";
import { freePort } from "../../runtime/free-port.ts";
import { isAsked } from "./is-asked.ts";

// Only Debian's package rabbitmq-server is used.
const SERVE = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const NAMES = "/usr/bin/epmd";

/** Whether Debian's rabbitmq-server is installed. */
export const hasRabbitmq = isAsked && existsSync(SERVE) && existsSync(NAMES);

export interface RealRabbitmq {
  readonly port: number;
  stop(): Promise<void>;
}

/** A RabbitMQ on 127.0.0.1 with its usual user `guest`, and Erlang's server of names that it needs. Cost: some ten seconds. */
export async function startRealRabbitmq(): Promise<RealRabbitmq> {
  const dir = await mkdtemp(join(tmpdir(), "berth-rabbitmq-"));
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    const names = await startChildServer({
      command: NAMES,
      args: (port) => ["-port", String(port), "-address", "127.0.0.1"],
      // Asks for all names.
      greeting: "\0\u0001n",
      answer: "",
    });
    const distribution = await freePort();
    const environment = (port: number): readonly string[] => [
      ...[`HOME=${dir}`, `ERL_EPMD_PORT=${names.port}`, `RABBITMQ_NODENAME=rabbit-${port}@localhost`],
      ...["RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", `RABBITMQ_NODE_PORT=${port}`, `RABBITMQ_DIST_PORT=${distribution}`],
      ...[`RABBITMQ_MNESIA_BASE=${dir}/mnesia`, `RABBITMQ_LOG_BASE=${dir}/log`, `RABBITMQ_CONF_ENV_FILE=/dev/null`],
      ...[`RABBITMQ_ENABLED_PLUGINS_FILE=${dir}/plugins`, `RABBITMQ_CONFIG_FILE=${dir}/none`],
      // Its threads would otherwise wait busily for work.
      "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1 +sbwt none",
    ];
    const server = await startChildServer({
      command: "/usr/bin/env",
      args: (port) => [...environment(port), SERVE],
      readyMsMax: 150_000,
      greeting: "GET / HTTP/1.0\r\n\r\n",
      answer: "AMQP",
    }).catch(async (error: unknown) => {
      await names.stop();
      throw error;
    });
    return {
      port: server.port,
      stop: async () => {
        await server.stop();
        await names.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
