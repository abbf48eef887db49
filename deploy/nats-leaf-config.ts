import { conductorPermissions, natsUserOfConductors } from "../adapters/nats/streams.ts";
import { account, accountOfApi, checkNames, natsAccountOfCell, quoted, user, userOfApiIn } from "./nats-config.ts";

export interface HubCell {
  readonly name: string;
  /** The password of the API tier's user in the cell's account. */
  readonly apiPassword: string;
  /** The password by which the cell's own server connects to the cell's account. */
  readonly leafPassword: string;
}

export interface HubOptions {
  /** Host names of all servers of the hub. There are three, so that streams may have three copies. */
  readonly servers: readonly string[];
  /** The name of this server. */
  readonly server: string;
  readonly apiPassword: string;
  /** The password that the servers of the hub use among each other. */
  readonly routePassword: string;
  readonly cells: readonly HubCell[];
  readonly storeDir: string;
}

export interface LeafOptions {
  readonly cell: string;
  readonly conductorPassword: string;
  readonly leafPassword: string;
  readonly hubServers: readonly string[];
  readonly storeDir: string;
}

const CLIENT_PORT = 4222;
const ROUTE_PORT = 6222;
const LEAF_PORT = 7422;
/** /healthz of each server, within its container. */
export const NATS_MONITOR_PORT = 8222;

/**
 * One server of the hub. It has the API tier's account with its queue, and for each cell an account without streams, which only forwards:
 * requests to JetStream there go to the domain of the cell's own server, which is a leaf of this one.
 */
export function natsHubConfig(options: HubOptions): string {
  checkNames(options.cells);
  const route = (server: string) => quoted(`nats://route:${options.routePassword}@${server}:${ROUTE_PORT}`);
  const doors = options.cells.map(({ name, apiPassword }) =>
    account(natsAccountOfCell(name), [userOfApiIn(name, apiPassword, name)], "disabled"),
  );
  const leaves = options.cells.map(
    ({ name, leafPassword }) =>
      `      { user: ${quoted(leafUserOf(name))}, password: ${quoted(leafPassword)}, account: ${quoted(natsAccountOfCell(name))} }`,
  );
  return [
    ...head(options.server, options.storeDir, "hub"),
    `cluster {`,
    `  name: hub, listen: "0.0.0.0:${ROUTE_PORT}"`,
    `  authorization { user: route, password: ${quoted(options.routePassword)} }`,
    `  routes: [${options.servers.map(route).join(", ")}]`,
    `}`,
    `leafnodes {`,
    `  listen: "0.0.0.0:${LEAF_PORT}"`,
    `  authorization {`,
    `    users: [`,
    ...leaves,
    `    ]`,
    `  }`,
    `}`,
    `accounts {`,
    ...[accountOfApi(options.apiPassword), ...doors],
    `}`,
    `default_js_domain {`,
    ...options.cells.map(({ name }) => `  ${quoted(natsAccountOfCell(name))}: ${quoted(name)}`),
    `}`,
    ``,
  ].join("\n");
}

/** A cell's own server. It stores and serves the cell's streams, whether or not the hub is reachable. */
export function natsLeafConfig(options: LeafOptions): string {
  const { cell, leafPassword } = options;
  checkNames([{ name: cell }]);
  const urls = options.hubServers.map((server) =>
    quoted(`nats://${leafUserOf(cell)}:${leafPassword}@${server}:${LEAF_PORT}`),
  );
  const conductors = user(natsUserOfConductors(cell), options.conductorPassword, conductorPermissions(cell));
  return [
    ...head(cell, options.storeDir, cell),
    `leafnodes {`,
    `  remotes: [`,
    `    { urls: [${urls.join(", ")}], account: ${quoted(natsAccountOfCell(cell))} }`,
    `  ]`,
    `}`,
    `accounts {`,
    account(natsAccountOfCell(cell), [conductors]),
    `}`,
    ``,
  ].join("\n");
}

function head(server: string, storeDir: string, domain: string): readonly string[] {
  return [
    `server_name: ${quoted(server)}`,
    `listen: "0.0.0.0:${CLIENT_PORT}"`,
    `http: "127.0.0.1:${NATS_MONITOR_PORT}"`,
    `jetstream {`,
    `  store_dir: ${quoted(storeDir)}`,
    `  domain: ${quoted(domain)}`,
    `}`,
  ];
}

function leafUserOf(cell: string): string {
  return `leaf-${cell}`;
}
