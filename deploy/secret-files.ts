import { natsUserOfApi, natsUserOfApiIn, natsUserOfConductors } from "../adapters/nats/streams.ts";
import { HUB_SERVERS } from "./cell-names.ts";
import { natsHubConfig, natsLeafConfig } from "./nats-leaf-config.ts";

const STORE_DIR = "/data";

/** The files of a deployment that contain passwords, by name. `passwordOf` always returns the same password for the same argument. */
export function secretFiles(
  cells: readonly string[],
  passwordOf: (what: string) => string,
): Readonly<Record<string, string>> {
  return {
    ...filesAbove(cells, passwordOf),
    ...Object.assign({}, ...cells.map((cell) => filesOfCell(cell, passwordOf))),
  };
}

function filesAbove(cells: readonly string[], passwordOf: (what: string) => string): Record<string, string> {
  const hub = (server: string) =>
    natsHubConfig({
      server,
      servers: HUB_SERVERS,
      apiPassword: passwordOf("nats api"),
      routePassword: passwordOf("nats route"),
      cells: cells.map((name) => ({
        name,
        apiPassword: passwordOf(`nats api ${name}`),
        leafPassword: passwordOf(`nats leaf ${name}`),
      })),
      storeDir: STORE_DIR,
    });
  const cellUrls = cells.flatMap((cell): [string, string][] => {
    const prefix = `BERTH_${cell.toUpperCase().replaceAll("-", "_")}`;
    return [
      [`${prefix}_DATABASE_URL`, databaseUrl(`${cell}-postgres`, passwordOf(`postgres ${cell}`))],
      // The URL is that of the hub, which forwards to the JetStream domain of the cell's own server.
      [`${prefix}_NATS_URL`, natsUrl(HUB_SERVERS, natsUserOfApiIn(cell), passwordOf(`nats api ${cell}`))],
    ];
  });
  return {
    ...Object.fromEntries(HUB_SERVERS.map((server) => [`${server}.conf`, hub(server)])),
    "postgres.env": environment([["POSTGRES_PASSWORD", passwordOf("postgres")]]),
    "redis.conf": `bind 0.0.0.0\nrequirepass ${passwordOf("redis")}\nsave ""\nappendonly no\nmaxmemory 48mb\ndir /tmp\n`,
    "above.env": environment([
      ["BERTH_DATABASE_URL", databaseUrl("postgres", passwordOf("postgres"))],
      // Each server has a copy of the queue of accepted requests.
      [
        "BERTH_NATS_URL",
        `${natsUrl(HUB_SERVERS, natsUserOfApi, passwordOf("nats api"))}?replicas=${HUB_SERVERS.length}`,
      ],
      ["BERTH_REDIS_URL", `redis://:${passwordOf("redis")}@redis:6379`],
    ]),
    "console-proxy.env": environment([["BERTH_DATABASE_URL", databaseUrl("postgres", passwordOf("postgres"))]]),
    "cells.env": environment([["BERTH_CELLS", cells.join(",")], ...cellUrls]),
  };
}

/** None of these leads out of the cell, except the leaf's own connection to the hub. */
function filesOfCell(cell: string, passwordOf: (what: string) => string): Record<string, string> {
  const conductorPassword = passwordOf(`nats conductor ${cell}`);
  const leafPassword = passwordOf(`nats leaf ${cell}`);
  const hubServers = HUB_SERVERS;
  return {
    [`${cell}-nats.conf`]: natsLeafConfig({ cell, conductorPassword, leafPassword, hubServers, storeDir: STORE_DIR }),
    [`${cell}-postgres.env`]: environment([["POSTGRES_PASSWORD", passwordOf(`postgres ${cell}`)]]),
    [`${cell}-conductor.env`]: environment([
      ["BERTH_CELL_DATABASE_URL", databaseUrl(`${cell}-postgres`, passwordOf(`postgres ${cell}`))],
      ["BERTH_NATS_URL", natsUrl([`${cell}-nats`], natsUserOfConductors(cell), conductorPassword)],
    ]),
  };
}

function databaseUrl(host: string, password: string): string {
  return `postgres://berth:${password}@${host}:5432/berth`;
}

function natsUrl(servers: readonly string[], user: string, password: string): string {
  return servers.map((server) => `nats://${user}:${password}@${server}:4222`).join(",");
}

function environment(entries: readonly (readonly [string, string])[]): string {
  return entries.map(([name, value]) => `${name}=${value}\n`).join("");
}
