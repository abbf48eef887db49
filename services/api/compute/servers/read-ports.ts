import type { PortStore } from "../../../../core/stores/api/port-store.ts";
import { groupsToAttach } from "../../../../core/tasks/port-change.ts";
import type { PortRecord } from "../../../../core/tasks/port-record.ts";
import type { PortResourceRequest } from "../../../../proto/gen/berth/shared.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, invalidField } from "../../http/fault.ts";
import type { Identity } from "../../http/identity.ts";
import type { NetworkRule } from "../../network/network-rule.ts";
import { isPortAddress, SIMPLE_NETWORK } from "../../network/simple-network.ts";
import type { CreateServerBody } from "./create-schema.ts";

/**
 * Reads the networks in a body: ports, with the request groups that they ask of a host, and connections to Berth's own network, for each of
 * which every server gets a port. Refuses other networks, a port that is unknown or of another project, a port that is named twice, and
 * ports or fixed addresses for several servers.
 */
export async function readPorts(
  { server: { networks } }: CreateServerBody,
  store: Pick<PortStore, "ports"> | null,
  from: { readonly identity: Identity; readonly servers: number; readonly rule: NetworkRule },
): Promise<readonly WantedPort[]> {
  if (networks === undefined || networks === "auto" || networks.length === 0)
    return from.rule === "simple" ? [connection(null, "")] : [];
  if (typeof networks === "string") return [];
  const asked: readonly AskedNetwork[] = networks.map((network) => readNetwork(network, networks, from));
  const ids = asked.flatMap(({ portId }) => portId ?? []);
  if (new Set(ids).size < ids.length) throw badRequest("A port is named twice in networks.");
  if (from.servers > 1 && ids.length > 0)
    throw badRequest("A port cannot be given to several servers: leave out min_count and max_count.");
  const found = store === null || ids.length === 0 ? [] : await store.ports(ids);
  const { projectId, isAdmin } = from.identity;
  const visible = new Map(
    found.filter((port) => isAdmin || port.projectId === projectId).map((port) => [port.id, port]),
  );
  const wanted: WantedPort[] = [];
  for (const { portId, address, tag } of asked) {
    if (portId === null) {
      wanted.push(connection(address, tag));
      continue;
    }
    const port = visible.get(portId);
    if (port === undefined) throw badRequest(`Port id ${portId} could not be found.`);
    // Suffixes are numbered by position, not by port id, so that servers with equal requests share one translation.
    const before = { portRequests: wanted.flatMap(({ requests }) => requests) };
    wanted.push({ port, requests: groupsToAttach(before, {}, port), address: null, tag });
  }
  return wanted;
}

type Networks = Exclude<NonNullable<CreateServerBody["server"]["networks"]>, string>;

interface AskedNetwork {
  /** Null for a connection to Berth's own network. */
  readonly portId: string | null;
  readonly address: string | null;
  readonly tag: string;
}

function readNetwork(
  { port, uuid, fixed_ip, tag = "" }: Networks[number],
  networks: Networks,
  { rule, servers }: { readonly rule: NetworkRule; readonly servers: number },
): AskedNetwork {
  const address = fixed_ip ?? null;
  if (port != null && (rule === "simple" || address === null)) {
    if (address !== null) throw badRequest(`Specified Fixed IP '${address}' cannot be used with port '${port}'`);
    return { portId: storedSpelling(port), address: null, tag };
  }
  if (rule === "none")
    throw invalidField("networks", uuid ?? networks, "Berth connects no networks: name ports, none or auto.");
  if (uuid === undefined) throw badRequest("Bad network format: missing 'uuid'");
  if (storedSpelling(uuid) !== SIMPLE_NETWORK.id) throw badRequest(`Network ${uuid} could not be found.`);
  if (address !== null && servers > 1)
    throw badRequest("Invalid launch request: a fixed IP address cannot be given to several servers.");
  if (address !== null && !isPortAddress(address))
    throw badRequest(`Fixed IP address ${address} is not one of network ${SIMPLE_NETWORK.id}.`);
  return { portId: null, address, tag };
}

const connection = (address: string | null, tag: string): WantedPort => ({ port: null, requests: [], address, tag });

/** A port with the request groups that it adds to its server, or a connection to Berth's own network, for which a port is made. */
export interface WantedPort {
  readonly port: PortRecord | null;
  readonly requests: readonly PortResourceRequest[];
  /** The address that the connection must have, or null for any. */
  readonly address: string | null;
  readonly tag: string;
}
