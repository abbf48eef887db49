import type { AuditReport } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { conductorSettingNames } from "../../audit/conductor-setting-names.ts";
import { type EmbeddedCloud, startCloud } from "../../cloud/embedded-cloud.ts";
import type { HostFilter } from "../../core/scheduling/filters/host-filter.ts";
import { createLogger } from "../../runtime/logger.ts";
import { generateHosts, type HostConfig } from "../../services/compute-agent/host-config.ts";
import { type ApiAnswer, callApi } from "./call-api.ts";

export interface InProcessOptions {
  /** The cells with their hosts, or a number of cells with four hosts of 32 VCPUs each. Two cells by default. */
  readonly cells?: number | readonly { readonly name: string; readonly hosts: readonly HostConfig[] }[];
  /** Number of schedulers; 2 by default. */
  readonly schedulers?: number;
  /** Number of conductors of each cell; 2 by default. */
  readonly conductors?: number;
  /** Custom host filters, which every scheduler asks. */
  readonly filters?: readonly HostFilter[];
  /** URL of a Postgres server, on which the cloud creates a fresh database. By default the cloud embeds a server, which ends with it. */
  readonly databaseUrl?: string;
}

const HOSTS = 4;

/**
 * A whole cloud in this process, with all four services: the real code on a real Postgres, with the in-process bus, soft state and agent
 * link. None of its parts can be killed, but its hosts can be told to fail builds. Starting a cloud takes some seconds.
 */
export class InProcessCloud {
  readonly target = "local";
  readonly parts: readonly { readonly name: string }[];
  readonly #cloud: EmbeddedCloud;

  private constructor(cloud: EmbeddedCloud, parts: readonly string[]) {
    this.#cloud = cloud;
    this.parts = parts.map((name) => ({ name }));
  }

  /** Resolves when the cloud serves and all hosts are up. When it rejects, nothing is left running. */
  static async start(options: InProcessOptions = {}): Promise<InProcessCloud> {
    const { schedulers = 2, conductors = 2, filters = [], databaseUrl = null } = options;
    const cells = cellsOf(options.cells ?? 2);
    const cloud = await startCloud({
      ...{ cells, schedulers, conductors, filters, databaseUrl, dataDir: null },
      listen: { host: "127.0.0.1", port: 0 },
      logger: createLogger({ name: "cloud", level: "silent" }),
      fail: (error) => {
        throw error;
      },
    });
    const below = cells.flatMap(({ name }) => [...numbered(`${name}-conductor`, conductors), `${name}-agent`]);
    return new InProcessCloud(cloud, ["api", ...numbered("scheduler", schedulers), ...below]);
  }

  /** Base URL of the Compute API, without a path. */
  get apiUrls(): readonly string[] {
    return [this.#cloud.apiUrl];
  }

  /** Sends a request to the API: `call("POST", "/v2.1/flavors", { flavor: … })`. */
  call(method: string, path: string, body?: unknown): Promise<ApiAnswer> {
    return callApi(`${this.#cloud.apiUrl}${path}`, method, body);
  }

  /** Audits the six laws, including the guests that really run on the hosts. */
  audit(options: { readonly pauseMs: number; readonly patienceMs: number }): Promise<AuditReport> {
    const { databaseUrl, cells } = this.#cloud;
    return auditTwice({ apiUrl: databaseUrl, cells, conductorSettings: conductorSettingNames, ...options });
  }

  /** Ends the whole cloud. */
  close(): Promise<void> {
    return this.#cloud.close();
  }
}

function cellsOf(cells: NonNullable<InProcessOptions["cells"]>) {
  if (typeof cells !== "number") return cells;
  return numbered("cell", cells).map((name) => ({ name, hosts: generateHosts(`${name}-host`, HOSTS) }));
}

function numbered(what: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${what}-${index + 1}`);
}
