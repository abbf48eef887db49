import { createHash } from "node:crypto";
import { formatNumberList } from "../../../core/discovery/format-number-list.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import { base64Data } from "../../../core/tasks/base64-data.ts";
import { guestInterfaces } from "../../../core/tasks/port-change.ts";
import { diskImageOf } from "../../../core/tasks/server-spec.ts";
import type { GuestInterface, InjectedFile, ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { statedSha512 } from "../../../runtime/image-hash.ts";
import { macOf } from "../../../runtime/mac-of.ts";
import type { GuestName } from "../journal.ts";

/** Settings of the host that apply to every container. */
export interface ContainerDefaults {
  /** The storage pool of the root disks. */
  readonly storagePool: string;
  /** The bridge of the containers' interfaces, or null for containers without interfaces. */
  readonly bridge: string | null;
}

/** The description of a container that LXD stores. */
export interface ContainerConfig {
  readonly config: Readonly<Record<string, string>>;
  readonly devices: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Keys of a container's configuration that name its server and attempt, and record what was done with it. */
export const OWN_KEYS = {
  host: "user.berth.host",
  server: "user.berth.server",
  attempt: "user.berth.attempt",
  /** The boot of the machine during which the guest runs by order. Absent for a guest that has been stopped or has never run. */
  runsIn: "user.berth.runs-in",
  /** `true` once the guest has run. */
  hasRun: "user.berth.has-run",
  /** The attempt to which the guest was handed over. */
  handedTo: "user.berth.handed-to",
  /** The host's CPUs that the guest has for itself, as `1,3-5`. Absent when it has none. */
  held: "user.berth.held-cpus",
  /** `disk` until the disk of the guest that moves here has arrived. */
  receives: "user.berth.receives",
  /** The order by which the disk has arrived. A later order brings the disk of a guest that may have run meanwhile. */
  received: "user.berth.received",
  /** The port and the key of this guest's transfer, as `4711 KEY`, until the guest is started. */
  listens: "user.berth.listens",
} as const;

const GIB = "GiB";
/** Containers share the host's table of processes, which one of them could fill. */
const PROCESSES_MAX = 4_096;
const PERIOD_MS = 100;
const NAME_PREFIX = "berth-";
const NAME_DIGITS = 32;

/** The container's name in LXD. Ids of attempts have characters that are not allowed there. */
export function containerName({ host, attemptId }: Pick<GuestName, "host" | "attemptId">): string {
  const digest = createHash("sha256").update(`${host} ${attemptId}`).digest("hex");
  return `${NAME_PREFIX}${digest.slice(0, NAME_DIGITS)}`;
}

/**
 * The container of a server. Without a pinning it may use every CPU of the host, as many at a time as the flavor has. Throws an Error that says
 * why no host could build it.
 */
export function containerOf(
  server: ServerSpec,
  name: GuestName,
  { pinning, ...defaults }: ContainerDefaults & { readonly pinning?: GuestPinning | undefined },
): ContainerConfig {
  const { flavor, ports } = server;
  if (flavor === undefined || flavor.vcpus < 1 || flavor.memoryMib < 1)
    throw new Error("the server's flavor has no VCPU or no memory");
  if (flavor.ephemeralGib > 0 || flavor.swapMib > 0)
    throw new Error("containers have neither ephemeral disks nor swap: use a flavor without them");
  const { storagePool, bridge } = defaults;
  const root = {
    ...{ type: "disk", path: "/", pool: storagePool },
    ...(flavor.diskGib > 0 && { size: `${flavor.diskGib}${GIB}` }),
  };
  const interfaces = bridge === null ? {} : interfaceDevices(guestInterfaces(ports).interfaces, bridge);
  return {
    config: {
      ...(pinning === undefined ? { "limits.cpu": String(flavor.vcpus) } : cpuLimitsOf(pinning)),
      "limits.memory": `${flavor.memoryMib}MiB`,
      "limits.processes": String(PROCESSES_MAX),
      // Only the cell's orders may start a guest, because its server may have been moved while the host was down.
      "boot.autostart": "false",
      // A guest must not read the names of hosts, which the keys of its configuration contain.
      "security.devlxd": "false",
      ...cloudInitOf(server),
      [OWN_KEYS.host]: name.host,
      [OWN_KEYS.server]: name.serverUuid,
      [OWN_KEYS.attempt]: name.attemptId,
    },
    devices: { root, ...interfaces },
  };
}

/**
 * A container's processes have no vCPUs: they run on all of its CPUs. One that floats over more shared CPUs than its flavor has gets as much time as that many
 * CPUs have.
 */
function cpuLimitsOf({ vcpus, held }: GuestPinning): Record<string, string> {
  const cpus = [...new Set([...vcpus.flat(), ...held])].sort((a, b) => a - b);
  if (cpus.length === 0) return { "limits.cpu": String(vcpus.length) };
  const isLimited = held.length === 0 && vcpus.length < cpus.length;
  return {
    // LXD takes a single number for an amount.
    "limits.cpu": cpus.length === 1 ? `${cpus[0]}-${cpus[0]}` : formatNumberList(cpus),
    ...(isLimited && { "limits.cpu.allowance": `${vcpus.length * PERIOD_MS}ms/${PERIOD_MS}ms` }),
    ...(held.length > 0 && { [OWN_KEYS.held]: formatNumberList(held) }),
  };
}

/** The devices of LXD for a container's interfaces. The first slot has `eth0`. */
export function interfaceDevices(interfaces: readonly GuestInterface[], bridge: string): ContainerConfig["devices"] {
  return Object.fromEntries(
    interfaces.map(({ portId, slot, macAddress: hwaddr = macOf(portId) }) => {
      const name = `eth${slot - 1}`;
      return [name, { type: "nic", nictype: "bridged", name, parent: bridge, hwaddr }];
    }),
  );
}

/** User data, key and files for images with cloud-init, whose templates write them into the container. */
function cloudInitOf({ userData, publicKey, hostname, files }: ServerSpec): Record<string, string> {
  const vendor = [
    "#cloud-config",
    ...(hostname === "" ? [] : [`hostname: ${JSON.stringify(hostname)}`]),
    ...(publicKey === "" ? [] : [`ssh_authorized_keys: [${JSON.stringify(publicKey.trim())}]`]),
    ...(files.length === 0 ? [] : [`write_files: ${JSON.stringify(files.map(writtenFileOf))}`]),
  ];
  return {
    ...(vendor.length > 1 && { "cloud-init.vendor-data": `${vendor.join("\n")}\n` }),
    ...(userData !== "" && {
      "cloud-init.user-data": Buffer.from(base64Data(userData) ?? "", "base64").toString("utf8"),
    }),
  };
}

const writtenFileOf = ({ path, contents }: InjectedFile) => ({ path, encoding: "b64", content: contents });

/** The cloud's facts about the server's image. Throws an Error that says why no host could use it. */
export function expectedLxdImageOf(server: ServerSpec): {
  readonly id: string;
  readonly sha512: string | null;
} {
  const { imageRef, imageProperties } = diskImageOf(server);
  if (imageRef === "") throw new Error("a container needs an image: name one, or choose hosts of another driver");
  return { id: imageRef, sha512: statedSha512(imageProperties) };
}
