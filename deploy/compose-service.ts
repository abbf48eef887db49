export interface ComposeOptions {
  readonly cells: number;
  /** The number of hosts in each cell. */
  readonly hosts: number;
  /** The path in the file, either absolute or relative to the file's own directory. */
  readonly secretsDir: string;
}

/** One entry of `services` in Compose's format. */
export interface ComposeService {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string; readonly target: string };
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly env_file?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: DependsOn;
  readonly [other: string]: unknown;
}

export type DependsOn = Readonly<Record<string, { readonly condition: string }>>;

/** The common part of all services: no more rights, writable places or memory than needed, and ten seconds to end. */
const CONFINED = {
  read_only: true,
  tmpfs: ["/tmp"],
  cap_drop: ["ALL"],
  security_opt: ["no-new-privileges:true"],
  stop_grace_period: "10s",
  restart: "unless-stopped",
};

const OFTEN = { interval: "5s", timeout: "4s", retries: 60 };

function buildOf(target: string) {
  return { context: "..", dockerfile: "deploy/Dockerfile", target };
}

/** A variable of the environment of `docker compose`, with a fallback. */
export function fromEnvironment(name: string, fallback: string | number): string {
  return `\${${name}:-${fallback}}`;
}

/** One of Berth's own services, given by the arguments of `berth`. */
export function berth(options: {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly envFiles: readonly string[];
  readonly networks: readonly string[];
  readonly probePort: number | null;
  readonly memory: string;
  readonly volumes?: readonly string[];
  readonly dependsOn?: DependsOn;
}): ComposeService {
  const { probePort, volumes, dependsOn } = options;
  return {
    image: fromEnvironment("BERTH_IMAGE", "berth:local"),
    build: buildOf("berth"),
    command: options.command,
    environment: {
      ...options.env,
      // An empty value disables traces. With the profile `observability` use http://otel-collector:4318.
      BERTH_OTLP_ENDPOINT: fromEnvironment("BERTH_OTLP_ENDPOINT", ""),
    },
    env_file: options.envFiles,
    ...(volumes ? { volumes } : {}),
    networks: options.networks,
    ...(dependsOn ? { depends_on: dependsOn } : {}),
    ...(probePort === null
      ? {}
      : { healthcheck: { test: ["CMD", "node", "/app/deploy/healthcheck.mjs", `${probePort}`], ...OFTEN } }),
    mem_limit: options.memory,
    ...CONFINED,
  };
}

/** A server that is not part of Berth. `check` is a line of bash. */
export function server(options: {
  readonly command: readonly string[];
  readonly volumes: readonly string[];
  readonly networks: readonly string[];
  readonly check: string;
  readonly memory: string;
  readonly ports?: readonly string[];
  readonly envFile?: string;
  readonly dependsOn?: DependsOn;
}): ComposeService {
  const { ports, envFile, dependsOn } = options;
  return {
    image: fromEnvironment("BERTH_SERVERS_IMAGE", "berth-servers:local"),
    build: buildOf("servers"),
    command: options.command,
    ...(envFile === undefined ? {} : { env_file: [envFile] }),
    volumes: options.volumes,
    networks: options.networks,
    ...(ports ? { ports } : {}),
    ...(dependsOn ? { depends_on: dependsOn } : {}),
    healthcheck: { test: ["CMD", "bash", "-c", options.check.replaceAll("$", "$$$$")], ...OFTEN },
    mem_limit: options.memory,
    ...CONFINED,
  };
}

/** A Postgres server with the database `berth`. */
export function postgres(options: {
  readonly volume: string;
  readonly envFile: string;
  readonly networks: readonly string[];
}): ComposeService {
  return {
    ...server({
      command: ["postgres-server"],
      volumes: [`${options.volume}:/data`],
      networks: options.networks,
      check: "exec 3<>/dev/tcp/127.0.0.1/5432",
      memory: "384m",
      envFile: options.envFile,
    }),
    shm_size: "128m",
  };
}

export function healthy(names: readonly string[]): DependsOn {
  return Object.fromEntries(names.map((name) => [name, { condition: "service_healthy" }]));
}

export function finished(names: readonly string[]): DependsOn {
  return Object.fromEntries(names.map((name) => [name, { condition: "service_completed_successfully" }]));
}

/** The named volumes that the services use. */
export function volumesOf(services: Readonly<Record<string, ComposeService>>): readonly string[] {
  const sources = Object.values(services).flatMap(({ volumes = [] }) => volumes.map((one) => one.split(":")[0] ?? ""));
  return [...new Set(sources.filter((source) => /^[a-z]/.test(source)))].sort();
}
