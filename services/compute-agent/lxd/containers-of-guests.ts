import type { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { parseNumberList } from "../../../core/discovery/parse-values.ts";
import type { HostedGuest } from "../driver.ts";
import type { CpuHolder } from "../guest-pins.ts";
import type { GuestName } from "../journal.ts";
import { formatContainerAddress, TAKES_NO_DISK } from "./container-address.ts";
import { containerName, OWN_KEYS } from "./container-of-server.ts";
import { readListening } from "./disk-receivers.ts";
import { lxdFingerprint } from "./hand-over-container.ts";
import type { FoundContainer } from "./lxd-container.ts";

/** The containers of these hosts that really exist. Other hosts may have theirs in the same LXD. */
export async function containersOn(
  client: LxdClient,
  hosts: ReadonlySet<string>,
): Promise<readonly (GuestName & { readonly running: boolean })[]> {
  return (await ofHosts(client, hosts)).map(({ name, status }) => ({ ...name, running: status === "Running" }));
}

/** The containers of these hosts, as an agent needs them whose journal does not know them. `inboundAddress` is where this machine waits for disks. */
export async function hostedContainers(
  client: LxdClient,
  hosts: ReadonlySet<string>,
  inboundAddress: string,
): Promise<readonly HostedGuest[]> {
  const found = await ofHosts(client, hosts);
  const waits = found.some(({ config }) => readListening(config) !== null);
  const lxd = waits ? await lxdFingerprint(client) : "";
  return found.map(({ name, config }) => {
    const guest = { ...name, volumeIds: [] };
    if (config[OWN_KEYS.hasRun] !== undefined) return { ...guest, stage: "has-run" };
    const at = readListening(config);
    const listensAt = at === null ? TAKES_NO_DISK : formatContainerAddress({ lxd, host: inboundAddress, ...at });
    return { ...guest, stage: "prepared", listensAt };
  });
}

/** The CPUs that containers have for themselves. */
export async function cpuHolders(client: LxdClient): Promise<readonly CpuHolder[]> {
  return (await allOf(client)).flatMap(({ config }) => {
    const { [OWN_KEYS.host]: host, [OWN_KEYS.server]: serverUuid, [OWN_KEYS.held]: cpus } = config;
    if (host === undefined || serverUuid === undefined) return [];
    const held = parseNumberList(cpus ?? "");
    if (held === null) throw new Error(`a container's ${OWN_KEYS.held} is ${cpus}: it must be a list as 1,3-5`);
    return [{ host, serverUuid, held }];
  });
}

/** A copy that somebody has made of a guest's container has the same configuration, and is no guest. */
async function ofHosts(client: LxdClient, hosts: ReadonlySet<string>) {
  return (await allOf(client)).flatMap(({ name, config, status }) => {
    const { [OWN_KEYS.host]: host, [OWN_KEYS.server]: serverUuid, [OWN_KEYS.attempt]: attemptId } = config;
    if (host === undefined || serverUuid === undefined || attemptId === undefined || !hosts.has(host)) return [];
    if (name !== containerName({ host, attemptId })) return [];
    return [{ name: { host, serverUuid, attemptId }, config, status }];
  });
}

function allOf(client: LxdClient): Promise<readonly FoundContainer[]> {
  return client.call("/1.0/instances?recursion=1") as Promise<readonly FoundContainer[]>;
}
