import { stringify } from "yaml";
import { cellNames, HUB_SERVERS, uplink } from "./cell-names.ts";
import { cellServices } from "./compose-cell.ts";
import { observability } from "./compose-observability.ts";
import {
  berth,
  type ComposeOptions,
  type ComposeService,
  finished,
  fromEnvironment,
  healthy,
  postgres,
  server,
  volumesOf,
} from "./compose-service.ts";

const HEAD = `# Written by \`node deploy/cells.ts\`; change that, or pass it other numbers, rather than this file. See docs/compose.md.
`;

const API_PORT = 8774;
const PROBE_PORT = 9100;
const APIS = ["api-1", "api-2"];
const SCHEDULERS = ["scheduler-1", "scheduler-2", "scheduler-3"];

/** The settings for authenticating callers in the environment of `docker compose`. Empty means not set. */
const WHO_MAY_CALL = [
  "BERTH_AUTH",
  "BERTH_KEYSTONE_URL",
  "BERTH_KEYSTONE_PASSWORD",
  "BERTH_ALLOW_UNAUTHENTICATED_NETWORK",
];

/** The compose file of a whole cloud. The same options give the same text. */
export function composeText(options: ComposeOptions): string {
  const cells = cellNames(options.cells);
  const services: Record<string, ComposeService> = {
    ...serversAbove(options.secretsDir, cells),
    ...servicesAbove(options.secretsDir, cells),
    ...Object.assign({}, ...cells.map((cell) => cellServices(cell, options))),
    ...observability(cells),
    audit: audit(options.secretsDir, cells),
    berth: commandLine(options.secretsDir, cells),
  };
  const file = {
    services,
    networks: {
      above: {},
      // A network between the API tier and a cell's two servers. Nothing else of a cell is on it.
      ...Object.fromEntries(cells.map((cell) => [uplink(cell), {}])),
      // A network inside each cell, with no way out.
      ...Object.fromEntries(cells.map((cell) => [cell, { internal: true }])),
    },
    volumes: Object.fromEntries(volumesOf(services).map((name) => [name, {}])),
  };
  // Compose 1.29 reads YAML 1.1, in which a bare `no` means false.
  return HEAD + stringify(file, { version: "1.1", aliasDuplicateObjects: false, lineWidth: 120 });
}

/** An operator's `berth`, for `docker compose run --rm berth …`. It may also ask agents for their guests. */
function commandLine(secrets: string, cells: readonly string[]): ComposeService {
  return {
    ...berth({
      command: ["--help"],
      env: { BERTH_AGENTS: agentsOf(cells) },
      envFiles: [`${secrets}/above.env`],
      networks: ["above", ...cells.map(uplink), ...cells],
      probePort: null,
      memory: "256m",
    }),
    profiles: ["tools"],
    restart: "no",
  };
}

/** The continuous audit, which asks the agents what runs, and leaves the state of the laws for the dashboards of the apis. */
function audit(secrets: string, cells: readonly string[]): ComposeService {
  return berth({
    command: ["audit", "--watch", "--publish", "--every", "10s"],
    env: { BERTH_AGENTS: agentsOf(cells) },
    envFiles: [`${secrets}/above.env`],
    networks: ["above", ...cells.map(uplink), ...cells],
    probePort: null,
    memory: "320m",
    dependsOn: finished(["prepare"]),
  });
}

/** Where the agents' probes are. */
function agentsOf(cells: readonly string[]): string {
  return cells.map((cell) => `${cell}-agent:${PROBE_PORT}`).join(",");
}

function serversAbove(secrets: string, cells: readonly string[]): Record<string, ComposeService> {
  const hub = (name: string) =>
    server({
      command: ["nats-server", "-c", "/etc/berth/nats.conf"],
      volumes: [`${secrets}/${name}.conf:/etc/berth/nats.conf:ro`, `${name}:/data`],
      networks: ["above", ...cells.map(uplink)],
      check:
        "exec 3<>/dev/tcp/127.0.0.1/8222 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '\"ok\"' <&3",
      memory: "128m",
    });
  return {
    postgres: postgres({ volume: "postgres", envFile: `${secrets}/postgres.env`, networks: ["above"] }),
    redis: server({
      command: ["redis-server", "/etc/berth/redis.conf"],
      volumes: [`${secrets}/redis.conf:/etc/berth/redis.conf:ro`],
      networks: ["above"],
      check: "exec 3<>/dev/tcp/127.0.0.1/6379",
      memory: "64m",
    }),
    ...Object.fromEntries(HUB_SERVERS.map((name) => [name, hub(name)])),
    "load-balancer": server({
      command: ["haproxy", "-f", "/etc/berth/haproxy.cfg"],
      volumes: ["./haproxy.cfg:/etc/berth/haproxy.cfg:ro"],
      networks: ["above"],
      ports: [`127.0.0.1:${fromEnvironment("BERTH_PORT", API_PORT)}:${API_PORT}`],
      check: `exec 3<>/dev/tcp/127.0.0.1/${API_PORT}`,
      memory: "64m",
      dependsOn: healthy(APIS),
    }),
  };
}

function servicesAbove(secrets: string, cells: readonly string[]): Record<string, ComposeService> {
  const networks = ["above", ...cells.map(uplink)];
  const envFiles = [`${secrets}/above.env`];
  const servers = healthy([
    "postgres",
    "redis",
    ...HUB_SERVERS,
    ...cells.flatMap((cell) => [`${cell}-postgres`, `${cell}-nats`]),
  ]);
  const api = berth({
    command: ["api"],
    env: {
      BERTH_LISTEN: `:${API_PORT}`,
      BERTH_METRICS_LISTEN: `:${PROBE_PORT}`,
      // The api does not start before the operator has chosen between Keystone and trusting all callers.
      ...Object.fromEntries(WHO_MAY_CALL.map((name) => [name, fromEnvironment(name, "")])),
    },
    envFiles,
    networks,
    probePort: API_PORT,
    memory: "320m",
    dependsOn: finished(["prepare"]),
  });
  const scheduler = berth({
    command: ["scheduler"],
    env: { BERTH_LISTEN: `:${PROBE_PORT}` },
    envFiles,
    networks,
    probePort: PROBE_PORT,
    memory: "320m",
    dependsOn: finished(["prepare"]),
  });
  return {
    // Sets up the databases, the cells and the queue with three copies. It runs again at each `up`, and changes nothing when everything
    // exists.
    prepare: {
      ...berth({
        command: [],
        env: {},
        envFiles: [...envFiles, `${secrets}/cells.env`],
        networks,
        probePort: null,
        memory: "256m",
        dependsOn: servers,
      }),
      entrypoint: ["node", "/app/deploy/prepare.ts"],
      restart: "on-failure",
    },
    ...Object.fromEntries(APIS.map((name) => [name, api])),
    ...Object.fromEntries(SCHEDULERS.map((name) => [name, scheduler])),
  };
}
