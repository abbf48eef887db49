import type { GuestMetadata } from "../../../adapters/qemu/config-drive.ts";
import type { ImageFormat } from "../../../adapters/qemu/disk-image.ts";
import type { ExpectedImage } from "../../../adapters/qemu/image-cache.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import {
  type DiskRole,
  INTERFACE_SLOTS,
  type MachineDisplay,
  type MachineKernel,
  type MachineNode,
  type VirtualMachine,
} from "../../../adapters/qemu/virtual-machine.ts";
import { directPortIds } from "../../../core/pinning/direct-ports.ts";
import { askedOf } from "../../../core/scheduling/request/asked.ts";
import { guestNodes } from "../../../core/scheduling/request/numa-nodes.ts";
import { base64Data } from "../../../core/tasks/base64-data.ts";
import { guestInterfaces } from "../../../core/tasks/port-change.ts";
import { bootsFromVolume } from "../../../core/tasks/server-volumes.ts";
import { withoutTrailing } from "../../../core/without-trailing.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { statedSha512 } from "../../../runtime/image-hash.ts";
import { macOf } from "../../../runtime/mac-of.ts";
import { interfaceOf } from "./guest-interfaces.ts";

/** Settings of the host that apply to every guest. */
export interface MachineDefaults {
  readonly machineType: string;
  readonly accel: "tcg" | "kvm";
  readonly cpuModel: string;
  /** Chooses among several CPU models of the host the one for a server, and rejects if none has the flags that the server requires. Absent when there is one. */
  readonly chooseCpuModel?: (server: ServerSpec) => Promise<string>;
  /** The bridge of the guests' interfaces, or null for QEMU's own network. */
  readonly bridge: string | null;
  /** The display of guests that are built from now on, or null. */
  readonly display: MachineDisplay | null;
}

export const ROOT_DISK = { node: "disk0", file: "disk0.qcow2", role: "root" } as const;
export const CONFIG_DRIVE = "config.iso";

const FORMATS: readonly ImageFormat[] = ["qcow2", "raw"];
const COMMAND_LINE = "root=/dev/vda console=tty0 console=ttyS0";
const HOSTNAME_CHARS_MAX = 63;

/** The machine of a server. Throws an Error that says why no host could build it. */
export function machineOf(
  server: ServerSpec,
  options: MachineDefaults & {
    readonly name: string;
    readonly blankDisks: readonly Pick<BlankDisk, "role">[];
    readonly kernel: MachineKernel | null;
  },
): VirtualMachine {
  const { flavor, uuid } = server;
  if (flavor === undefined || flavor.vcpus < 1 || flavor.memoryMib < 1)
    throw new Error("the server's flavor has no VCPU or no memory");
  const { name, machineType, accel, cpuModel } = options;
  const nodes = nodesOf(server);
  // The other ports are virtual functions of the host.
  const direct = directPortIds(server);
  const emulated = guestInterfaces(server.ports).interfaces.filter(({ portId }) => !direct.has(portId));
  const further = options.blankDisks.map(({ role }, index) => ({
    node: `disk${index + 1}`,
    file: `disk${index + 1}.qcow2`,
    role,
  }));
  return {
    ...{ name, uuid, machineType, accel, cpuModel },
    vcpus: flavor.vcpus,
    memoryMib: flavor.memoryMib,
    ...(nodes.length > 0 && { numaNodes: nodes }),
    disks: bootsFromVolume(server) ? further : [ROOT_DISK, ...further],
    configDrive: CONFIG_DRIVE,
    interfaces: emulated.map((one) => interfaceOf(one, options.bridge)),
    interfaceSlots: INTERFACE_SLOTS,
    hasMetadataAddress: true,
    bridge: options.bridge,
    kernel: options.kernel,
    ...(options.display !== null && { display: options.display }),
  };
}

/** The NUMA nodes that the guest sees, as its flavor or image lays them out. */
function nodesOf(server: ServerSpec): readonly MachineNode[] {
  const asked = askedOf(server);
  const read = asked === null ? null : guestNodes(asked);
  const nodes = read?.kind === "nodes" ? read.nodes : [];
  return nodes.map(({ cpus, memoryMib }) => ({ vcpus: [...cpus], memoryMib }));
}

/** A disk beside the first one: what the flavor calls ephemeral or swap. It is blank, without a file system. */
export interface BlankDisk {
  readonly role: DiskRole;
  readonly bytes: number;
}

export function blankDisksOf({ flavor }: ServerSpec): readonly BlankDisk[] {
  const disks: readonly BlankDisk[] = [
    { role: "ephemeral", bytes: (flavor?.ephemeralGib ?? 0) * 1_024 ** 3 },
    { role: "swap", bytes: (flavor?.swapMib ?? 0) * 1_024 ** 2 },
  ];
  return disks.filter(({ bytes }) => bytes > 0);
}

/** The cloud's facts about the image of a server or a rescue. Null for a server without one. Throws a final QemuError for facts that are none. */
export function expectedImageOf({
  imageRef,
  imageProperties,
}: Pick<ServerSpec, "imageRef" | "imageProperties">): ExpectedImage | null {
  if (imageRef === "") return null;
  const format = FORMATS.find((one) => one === imageProperties.disk_format) ?? null;
  try {
    return { id: imageRef, format, sha512: statedSha512(imageProperties) };
  } catch (error) {
    throw new QemuError("image", (error as Error).message, { isFinal: true, cause: error });
  }
}

/** The metadata that the guest gets about itself. */
export function guestMetadataOf(server: ServerSpec): GuestMetadata {
  const { uuid, name, projectId, availabilityZone, metadata, ports } = server;
  const hostname = server.hostname || sanitized(name) || `server-${uuid}`.slice(0, HOSTNAME_CHARS_MAX);
  return {
    ...{ uuid, name, hostname, projectId, availabilityZone, meta: metadata, launchIndex: server.launchIndex },
    userData: server.userData === "" ? null : Buffer.from(base64Data(server.userData) ?? "", "base64"),
    publicKeys: server.keyName === "" ? {} : { [server.keyName]: server.publicKey },
    files: server.files.map(({ path, contents }) => ({
      path,
      contents: Buffer.from(base64Data(contents) ?? "", "base64"),
    })),
    interfaces: ports.map(({ portId, networkId, macAddress: mac = macOf(portId) }) => ({ mac, portId, networkId })),
  };
}

/**
 * The kernel and RAM disk images with which an image is booted, and the kernel's command line (Nova: kernel_id, ramdisk_id,
 * os_command_line). Null for none.
 */
export function kernelImagesOf({ imageProperties }: Pick<ServerSpec, "imageProperties">): {
  readonly kernel: ExpectedImage;
  readonly ramdisk: ExpectedImage | null;
  readonly commandLine: string;
} | null {
  const { kernel_id: kernelId = "", ramdisk_id: ramdiskId = "", os_command_line: commandLine } = imageProperties;
  if (kernelId === "") return null;
  const imageOf = (id: string): ExpectedImage => ({ id, format: "raw", sha512: null });
  return {
    kernel: imageOf(kernelId),
    ramdisk: ramdiskId === "" ? null : imageOf(ramdiskId),
    commandLine: commandLine || COMMAND_LINE,
  };
}

/** A host name made from a server's name (Nova: sanitize_hostname). */
function sanitized(name: string): string {
  const plain = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[ _]/g, "-")
    .replace(/[^a-z0-9.-]/g, "");
  return withoutTrailing(plain.replace(/^[.-]+/, "").slice(0, HOSTNAME_CHARS_MAX), ".-");
}
