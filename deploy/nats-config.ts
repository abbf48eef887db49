import {
  apiPermissions,
  cellPermissionsOfApi,
  conductorPermissions,
  inboxPrefixOf,
  natsUserOfApi,
  natsUserOfApiIn,
  natsUserOfConductors,
} from "../adapters/nats/streams.ts";
import type { BusPermissions } from "../runtime/bus.ts";

export interface NatsConfigCell {
  readonly name: string;
  /** The password of the API tier's user in the cell's account (`api-<cell>`). */
  readonly apiPassword: string;
  /** The password of the user of the cell's conductors (`conductor-<cell>`). */
  readonly conductorPassword: string;
}

export interface NatsConfigOptions {
  /** The password of the API tier's user in its own account (`api`). */
  readonly apiPassword: string;
  readonly cells: readonly NatsConfigCell[];
  /** The directory of JetStream's files. */
  readonly storeDir: string;
  /** 127.0.0.1 by default. */
  readonly host?: string;
  /** 4222 by default. */
  readonly port?: number;
  /** Only for one of several servers that keep copies of each other's streams. */
  readonly cluster?: NatsConfigCluster;
}

export interface NatsConfigCluster {
  /** The name of this server. */
  readonly server: string;
  /** `host:port` at which the other servers connect. */
  readonly listen: string;
  /** `host:port` of all servers. */
  readonly routes: readonly string[];
  /** The password that the servers use among each other. */
  readonly password: string;
}

/**
 * The configuration of a nats-server for a cloud. It has an account for the API tier and one for each cell, so that no message crosses
 * between them, and users whose permissions are exactly those that their bus needs. Throws on a cell name or password that cannot be
 * written into it (names: letters, digits, `_` and `-`; passwords: printable ASCII).
 */
export function natsConfig(options: NatsConfigOptions): string {
  checkNames(options.cells);
  const cells = options.cells.map(({ name, apiPassword, conductorPassword }) =>
    account(natsAccountOfCell(name), [
      userOfApiIn(name, apiPassword),
      user(natsUserOfConductors(name), conductorPassword, conductorPermissions(name)),
    ]),
  );
  return [
    `listen: ${quoted(`${options.host ?? "127.0.0.1"}:${options.port ?? 4222}`)}`,
    `jetstream {`,
    `  store_dir: ${quoted(options.storeDir)}`,
    `}`,
    ...(options.cluster === undefined ? [] : clusterLines(options.cluster)),
    `accounts {`,
    ...[accountOfApi(options.apiPassword), ...cells],
    `}`,
    ``,
  ].join("\n");
}

function clusterLines({ server, listen, routes, password }: NatsConfigCluster): readonly string[] {
  return [
    `server_name: ${quoted(server)}`,
    `cluster {`,
    `  name: berth, listen: ${quoted(listen)}`,
    `  authorization { user: route, password: ${quoted(password)} }`,
    `  routes: [${routes.map((route) => quoted(`nats://route:${password}@${route}`)).join(", ")}]`,
    `}`,
  ];
}

/** Throws on a name that cannot be written into a configuration, or that occurs twice. */
export function checkNames(cells: readonly { readonly name: string }[]): void {
  const names = new Set(cells.map((cell) => cell.name));
  if (names.size !== cells.length) throw new Error("two cells have the same name");
  for (const name of names) {
    if (!/^[A-Za-z0-9_-]+$/.test(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a cell`);
  }
}

export function natsAccountOfCell(cell: string): string {
  return `CELL_${cell}`;
}

export function accountOfApi(password: string): string {
  return account("BERTH_API", [user(natsUserOfApi, password, apiPermissions)]);
}

/** `domain` is the JetStream domain to which the server forwards requests; it checks the permissions afterwards. */
export function userOfApiIn(cell: string, password: string, domain?: string): string {
  return user(natsUserOfApiIn(cell), password, cellPermissionsOfApi(cell), domain);
}

/** An account with its users. Without `jetStream` it keeps no streams here. */
export function account(name: string, users: readonly string[], jetStream: "enabled" | "disabled" = "enabled"): string {
  const streams = jetStream === "enabled" ? [`    jetstream: enabled`] : [];
  return [`  ${quoted(name)} {`, ...streams, `    users: [`, ...users, `    ]`, `  }`].join("\n");
}

/** A user with exactly the permissions that its bus needs. */
export function user(name: string, password: string, permissions: BusPermissions, domain?: string): string {
  const own = publishSubjects(permissions);
  const sent = domain === undefined ? own : own.map((subject) => subject.replace(/^\$JS\.API\./, `$JS.${domain}.API.`));
  const publish = [...new Set([...own, ...sent])].map(quoted).join(", ");
  const subscribe = [`${inboxPrefixOf(name)}.>`, ...permissions.answer].map(quoted).join(", ");
  // An answer goes to the inbox of the user that asked, where nothing else may be published.
  const answers = permissions.answer.length === 0 ? [] : [`          allow_responses { max: 1, expires: "1m" }`];
  return [
    `      {`,
    `        user: ${quoted(name)}, password: ${quoted(password)}`,
    `        permissions {`,
    `          publish { allow: [${publish}] }`,
    `          subscribe { allow: [${subscribe}] }`,
    ...answers,
    `        }`,
    `      }`,
  ].join("\n");
}

/** Every subject that a bus with these permissions publishes to, including the requests to JetStream, which are messages. */
export function publishSubjects(permissions: BusPermissions): readonly string[] {
  const consume = permissions.consume.flatMap(({ stream, consumer }) => [
    `$JS.API.CONSUMER.INFO.${stream}.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.ACK.${stream}.${consumer}.>`,
  ]);
  const manage = [
    "$JS.API.STREAM.CREATE.*",
    "$JS.API.STREAM.UPDATE.*",
    "$JS.API.STREAM.INFO.*",
    "$JS.API.CONSUMER.CREATE.>",
    "$JS.API.CONSUMER.DURABLE.CREATE.>",
    "$JS.API.CONSUMER.INFO.>",
  ];
  return [
    ...new Set([...permissions.publish, ...permissions.ask, ...consume, ...(permissions.ensureStreams ? manage : [])]),
  ];
}

/** A string of the configuration. Throws on text that cannot be written as one. */
export function quoted(text: string): string {
  if (!/^[\x20-\x7e]*$/.test(text)) throw new Error("a NATS configuration holds printable ASCII only");
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
