import { agentOf, conductorNames, uplink } from "./cell-names.ts";
import {
  berth,
  type ComposeOptions,
  type ComposeService,
  finished,
  healthy,
  postgres,
  server,
} from "./compose-service.ts";

const AGENT_PORT = 8776;
const PROBE_PORT = 9100;
/** Where the agent waits for the console proxy. */
const CONSOLE_PORT = 6084;
const TLS = {
  BERTH_TLS_CA: "/etc/berth/ca.pem",
  BERTH_TLS_CERT: "/etc/berth/cert.pem",
  BERTH_TLS_KEY: "/etc/berth/key.pem",
};

/**
 * All services of one cell. Only its two servers are also on the network to the API tier. Conductors and the agent know only the cell's own
 * addresses and credentials.
 */
export function cellServices(cell: string, { hosts, secretsDir }: ComposeOptions): Record<string, ComposeService> {
  const conductors = conductorNames(cell);
  const networks = [cell, uplink(cell)];
  const tls = (of: string) => [
    `${secretsDir}/${cell}-ca.pem:/etc/berth/ca.pem:ro`,
    `${secretsDir}/${of}.pem:/etc/berth/cert.pem:ro`,
    `${secretsDir}/${of}-key.pem:/etc/berth/key.pem:ro`,
  ];
  const conductor = (name: string) =>
    berth({
      command: ["conductor"],
      env: {
        BERTH_CELL: cell,
        BERTH_NAME: name,
        BERTH_LISTEN: `:${AGENT_PORT}`,
        BERTH_METRICS_LISTEN: `:${PROBE_PORT}`,
        ...TLS,
      },
      envFiles: [`${secretsDir}/${cell}-conductor.env`],
      volumes: tls(name),
      networks: [cell],
      probePort: PROBE_PORT,
      memory: "192m",
      // The API tier sets up the cell's database and streams.
      dependsOn: finished(["prepare"]),
    });
  return {
    [`${cell}-postgres`]: postgres({
      volume: `${cell}-postgres`,
      envFile: `${secretsDir}/${cell}-postgres.env`,
      networks,
    }),
    [`${cell}-nats`]: server({
      command: ["nats-server", "-c", "/etc/berth/nats.conf"],
      volumes: [`${secretsDir}/${cell}-nats.conf:/etc/berth/nats.conf:ro`, `${cell}-nats:/data`],
      networks,
      check: "exec 3<>/dev/tcp/127.0.0.1/4222",
      memory: "96m",
    }),
    ...Object.fromEntries(conductors.map((name) => [name, conductor(name)])),
    [`${cell}-agent`]: berth({
      command: ["compute-agent"],
      env: {
        BERTH_AGENT_ID: agentOf(cell).id,
        BERTH_HOSTS: `${hosts}`,
        // Compose substitutes this variable, which tests set.
        BERTH_FAKE_BY_METADATA: `\${BERTH_FAKE_BY_METADATA:-false}`,
        BERTH_CONDUCTORS: conductors.map((name) => `${name}:${AGENT_PORT}`).join(","),
        BERTH_DATA_DIR: "/data",
        BERTH_METRICS_LISTEN: `:${PROBE_PORT}`,
        BERTH_CONSOLE_LISTEN: `:${CONSOLE_PORT}`,
        BERTH_CONSOLE_ADDRESS: `${cell}-agent`,
        ...TLS,
      },
      envFiles: [],
      volumes: [...tls(`${cell}-agent`), `${cell}-agent:/data`],
      networks: [cell],
      probePort: PROBE_PORT,
      memory: "192m",
      dependsOn: healthy(conductors),
    }),
  };
}
