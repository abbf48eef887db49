import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { hostDeviceArguments } from "./host-devices.ts";

/** A virtual machine as QEMU has to build it, the same at every start and on every host. File names are relative to the guest's directory. */
export interface VirtualMachine {
  /** Names the guest among its host's processes: the attempt's id. */
  readonly name: string;
  /** The server's UUID, which the guest sees in its firmware tables. */
  readonly uuid: string;
  /** A versioned type such as `pc-q35-7.2`, because only that stays the same when QEMU is upgraded. */
  readonly machineType: string;
  readonly accel: "tcg" | "kvm";
  /** QEMU's name for the CPU model, with features after commas (`Westmere,+aes`). */
  readonly cpuModel: string;
  readonly vcpus: number;
  readonly memoryMib: number;
  /** The NUMA nodes that the guest sees. Absent when it sees none. */
  readonly numaNodes?: readonly MachineNode[] | undefined;
  readonly disks: readonly MachineDisk[];
  /** An ISO image that the guest finds under the label `config-2`, or null. */
  readonly configDrive: string | null;
  readonly interfaces: readonly MachineInterface[];
  /** The display that the guest has, with a keyboard and a pointer. Absent when it has none. */
  readonly display?: MachineDisplay | undefined;
  /** Whether the guest has a SCSI controller, to which volumes are connected. Absent in machines that were built without one. */
  readonly hasVolumeBus?: boolean | undefined;
  /** The number of slots for interfaces, into which one can also be put while the guest runs. Absent in machines that were built without them. */
  readonly interfaceSlots?: number | undefined;
  /** Whether interfaces without a bridge reach the metadata service at its address. Absent in machines that were built without it. */
  readonly hasMetadataAddress?: boolean | undefined;
  /** What interfaces without a bridge reach besides the metadata service. Absent in machines that were built before there was a choice: those are open. */
  readonly userNetwork?: UserNetwork | undefined;
  /** The bridge of interfaces that the guest may get while it runs. Absent or null when they do not get one. */
  readonly bridge?: string | null | undefined;
  /** The kernel that QEMU boots. Null when the guest boots from its first disk. */
  readonly kernel: MachineKernel | null;
}

/**
 * `isolated`: nothing. `open`: all that the host reaches, and the services on the host's loopback address. QEMU cannot forbid these alone, since every
 * address of its own network leads there, and a guest can send packets to 127.0.0.1 itself, too.
 */
export type UserNetwork = "isolated" | "open";

/** `vga` is a display that every firmware and operating system can use; `virtio` is faster for those that have its driver. */
export type MachineDisplay = "vga" | "virtio";

/** A NUMA node of the guest. */
export interface MachineNode {
  readonly vcpus: readonly number[];
  readonly memoryMib: number;
}

export interface MachineKernel {
  readonly path: string;
  /** The path of the RAM disk, or null. */
  readonly ramdisk: string | null;
  readonly commandLine: string;
}

export interface MachineDisk {
  /** Names the disk in QEMU: `disk0`, `disk1`, …; the first one is booted. */
  readonly node: string;
  /** A qcow2 image. */
  readonly file: string;
  /** What the disk is in the server's flavor. Absent in machines that were built before this was recorded. */
  readonly role?: DiskRole | undefined;
}

export type DiskRole = "root" | "ephemeral" | "swap";

export interface MachineInterface {
  readonly mac: string;
  /** The port that it belongs to. Absent in machines of earlier versions, in which the MAC address tells interfaces apart. */
  readonly portId?: string | undefined;
  /** The host's bridge that a tap device is attached to. Null for QEMU's own network. */
  readonly bridge: string | null;
  /** Names the interface in QEMU. Absent for the names `net0`, `net1`, … in the order of the list. */
  readonly id?: string | undefined;
  /** The slot that the interface is in, from 1 on. In a machine without that slot, QEMU chooses the place. */
  readonly slot?: number | undefined;
  /** Whether the guest was asked to release the interface, so that QEMU may have it or not. Absent when it was not. */
  readonly isLeaving?: true | undefined;
}

/**
 * QEMU's own network with the address of the metadata service. QEMU forwards only addresses of the network itself, so guests get link-local addresses
 * by DHCP. The address is served in an isolated network, too.
 */
export const METADATA_NETWORK = { net: "169.254.0.0/16", address: "tcp:169.254.169.254:80" } as const;

/** The name of the socket in the guest's directory, and of its device in QEMU, over which an interface reaches the metadata service. */
export const metadataSocket = (interfaceId: string): string => `metadata-${interfaceId}`;

/** How many slots for interfaces a machine gets. A port of the PCI bus has so many functions, and all slots are functions of one. */
export const INTERFACE_SLOTS = 8;
/** The place of the slots on the machine's bus, behind the devices that QEMU places itself. On the other machine type each slot is such a place. */
const SLOTS_AT = 0x10;

/** The disk from which a guest in rescue mode is booted. */
export const RESCUE_DISK: MachineDisk = { node: "rescue", file: "rescue.qcow2" };

/** Names the SCSI controller of volumes in QEMU. */
export const VOLUME_BUS = "volumes";

/** The names of a guest's files in its directory. */
export const GUEST_FILES = {
  monitor: "qmp",
  console: "console",
  consoleLog: "console.log",
  display: "vnc",
  processId: "pid",
  errors: "qemu.log",
} as const;

/**
 * TCG's cache of translated code. By default QEMU uses a quarter of the guest's memory for it in addition, which small guests do
 * not need.
 */
const TRANSLATION_CACHE_MIB = 32;

/**
 * The arguments of qemu-system for a guest that does not run yet. `isReceiving` guests wait for the memory or the disks of another guest. The
 * working directory of QEMU is the guest's directory. A CPU or memory that this host cannot give the guest ends QEMU at once.
 */
export function qemuArguments(
  machine: VirtualMachine,
  { isReceiving, pinning }: { readonly isReceiving: boolean; readonly pinning?: GuestPinning | undefined },
): readonly string[] {
  const { disks, interfaces, configDrive } = machine;
  // QEMU starts its bridge helper, which has rights that QEMU itself may lack.
  const usesBridge = machine.bridge != null || interfaces.some(({ bridge }) => bridge !== null);
  const accel = machine.accel === "tcg" ? `tcg,tb-size=${TRANSLATION_CACHE_MIB}` : "kvm";
  const memory = memoryArguments(machine, pinning);
  return [
    ...["-nodefaults", "-no-user-config", "-display", "none"],
    ...["-sandbox", `on,obsolete=deny,resourcecontrol=deny${usesBridge ? "" : ",elevateprivileges=deny,spawn=deny"}`],
    ...["-name", `guest=${escaped(machine.name)},debug-threads=on`, "-uuid", machine.uuid],
    ...["-machine", `${escaped(machine.machineType)},usb=off,dump-guest-core=off${memory.ofMachine}`, "-accel", accel],
    ...["-cpu", `${machine.cpuModel},enforce`, "-m", String(machine.memoryMib), "-smp", String(machine.vcpus)],
    ...memory.options,
    ...["-object", "rng-builtin,id=rng0", "-device", "virtio-rng-pci,rng=rng0,id=random0", "-device", "pvpanic-pci"],
    ...disks.flatMap(diskArguments),
    ...(configDrive === null ? [] : configDriveArguments(configDrive)),
    ...slotArguments(machine),
    ...interfaces.flatMap((one, index) => interfaceArguments(machine, { ...one, id: one.id ?? `net${index}` })),
    ...(machine.kernel === null ? [] : kernelArguments(machine.kernel)),
    ...(machine.display === undefined ? [] : displayArguments(machine.display)),
    // It is the last PCI device of the machine itself, so that the others stay where they are when an older machine gets one.
    ...(machine.hasVolumeBus === true ? ["-device", `virtio-scsi-pci,id=${VOLUME_BUS}`] : []),
    ...hostDeviceArguments(pinning?.devices ?? [], (port) => interfacePlace(machine, port)),
    ...["-chardev", `socket,id=console,path=${GUEST_FILES.console},server=on,wait=off,${CONSOLE_LOG}`],
    ...["-serial", "chardev:console"],
    ...["-chardev", `socket,id=monitor,path=${GUEST_FILES.monitor},server=on,wait=off`],
    ...["-mon", "chardev=monitor,mode=control", "-pidfile", GUEST_FILES.processId],
    // After the guest's own end the process stays, so that an agent which was away still learns how the guest ended.
    ...["-action", "reboot=reset,shutdown=pause,panic=pause", "-S"],
    ...(isReceiving ? ["-incoming", "defer"] : []),
  ];
}

const CONSOLE_LOG = `logfile=${GUEST_FILES.consoleLog},logappend=on`;

function diskArguments({ node, file }: MachineDisk, index: number): readonly string[] {
  const image = `driver=qcow2,node-name=${node},discard=unmap,file.driver=file,file.filename=${escaped(file)}`;
  return ["-blockdev", image, "-device", `virtio-blk-pci,drive=${node},id=${node}-device,bootindex=${index + 1}`];
}

function configDriveArguments(file: string): readonly string[] {
  const image = `driver=raw,node-name=config,read-only=on,file.driver=file,file.filename=${escaped(file)}`;
  return ["-blockdev", image, "-device", "virtio-blk-pci,drive=config,id=config-device"];
}

/** Devices can be put into a machine of type q35 while it runs only where there is a port for them, and into one of type i440fx anywhere. */
function slotArguments({ machineType, interfaceSlots = 0 }: VirtualMachine): readonly string[] {
  if (!isQ35(machineType)) return [];
  return Array.from({ length: interfaceSlots }, (_, index) => {
    const first = index === 0 ? ",multifunction=on" : "";
    return `pcie-root-port,id=${slotName(index + 1)},chassis=${index + 1},bus=pcie.0,addr=0x${SLOTS_AT.toString(16)}.${index}${first}`;
  }).flatMap((port) => ["-device", port]);
}

const isQ35 = (machineType: string): boolean => machineType.startsWith("pc-q35");
const slotName = (slot: number): string => `slot${slot}`;

function interfaceArguments(
  machine: VirtualMachine,
  one: MachineInterface & { readonly id: string },
): readonly string[] {
  const { mac, bridge, id } = one;
  const network = bridge === null ? ["user", ...userNetwork(machine, id)].join() : `bridge,br=${escaped(bridge)}`;
  const place = Object.entries(interfacePlace(machine, one)).map(([key, value]) => `,${key}=${value}`);
  const device = `virtio-net-pci,netdev=${id},mac=${mac},id=${interfaceDevice(id)}${place.join("")}`;
  const metadata =
    bridge === null && machine.hasMetadataAddress === true
      ? ["-chardev", `socket,id=${metadataSocket(id)},path=${metadataSocket(id)},server=on,wait=off`]
      : [];
  return [...metadata, "-netdev", `${network},id=${id}`, "-device", device];
}

function userNetwork({ hasMetadataAddress, userNetwork: reach }: VirtualMachine, id: string): readonly string[] {
  const isolation = reach === "isolated" ? ["restrict=on"] : [];
  if (hasMetadataAddress !== true) return isolation;
  const metadata = `guestfwd=${METADATA_NETWORK.address}-chardev:${metadataSocket(id)}`;
  return [`net=${METADATA_NETWORK.net}`, ...isolation, metadata];
}

/** The name of an interface's device in QEMU. */
export const interfaceDevice = (id: string): string => `${id}-device`;

/** The properties that put an interface's device into its slot. None if the machine does not have that slot. */
export function interfacePlace(
  { machineType, interfaceSlots = 0 }: Pick<VirtualMachine, "machineType" | "interfaceSlots">,
  { slot = 0 }: Pick<MachineInterface, "slot">,
): Readonly<Record<string, string>> {
  if (slot < 1 || slot > interfaceSlots) return {};
  if (isQ35(machineType)) return { bus: slotName(slot) };
  return { bus: "pci.0", addr: `0x${(SLOTS_AT + slot - 1).toString(16)}` };
}

function kernelArguments({ path, ramdisk, commandLine }: MachineKernel): readonly string[] {
  return ["-kernel", path, "-append", commandLine, ...(ramdisk === null ? [] : ["-initrd", ramdisk])];
}

/** QEMU's own name for the memory of a machine of type pc. */
const ONLY_MEMORY = "pc.ram";

/**
 * The options for memory that is bound or has huge pages, and for NUMA nodes of the guest. Memory has the same names on every host, however it is
 * backed there, since a live move recognises it by its name.
 */
function memoryArguments(
  { numaNodes, memoryMib }: VirtualMachine,
  pinning: GuestPinning | undefined,
): { readonly ofMachine: string; readonly options: readonly string[] } {
  const backing = (node: number): Backing => ({
    hostNode: pinning?.isBound ? (pinning.memory[node]?.hostNode ?? null) : null,
    pageKib: pinning?.pageKib ?? null,
  });
  if (numaNodes !== undefined)
    return {
      ofMachine: "",
      options: numaNodes.flatMap(({ vcpus, memoryMib: ofNode }, node) => [
        ...["-object", memoryObject(`ram-node${node}`, ofNode, backing(node))],
        ...["-numa", [`node,nodeid=${node},memdev=ram-node${node}`, ...vcpus.map((cpu) => `cpus=${cpu}`)].join()],
      ]),
    };
  const { hostNode, pageKib } = backing(0);
  if (hostNode === null && pageKib === null) return { ofMachine: "", options: [] };
  const object = `${memoryObject(ONLY_MEMORY, memoryMib, { hostNode, pageKib })},x-use-canonical-path-for-ramblock-id=off`;
  return { ofMachine: `,memory-backend=${ONLY_MEMORY}`, options: ["-object", object] };
}

interface Backing {
  readonly hostNode: number | null;
  readonly pageKib: number | null;
}

/** Huge pages are taken at once. So on a host without enough of them QEMU ends at its start, and not later, while the guest runs. */
function memoryObject(id: string, memoryMib: number, { hostNode, pageKib }: Backing): string {
  const kind =
    pageKib === null
      ? "memory-backend-ram"
      : `memory-backend-memfd,share=on,hugetlb=on,hugetlbsize=${pageKib}K,prealloc=on`;
  const bound = hostNode === null ? "" : `,host-nodes=${hostNode},policy=bind`;
  return `${kind},id=${id},size=${memoryMib}M${bound}`;
}

const DISPLAY_DEVICES = { vga: "VGA", virtio: "virtio-vga" } as const;

/**
 * The display is served by a socket in the guest's directory, which only the agent's user can enter. So QEMU asks clients for no password. The tablet
 * tells absolute positions, as a client's pointer does; Nova's default is the same (`pointer_model`).
 */
function displayArguments(display: MachineDisplay): readonly string[] {
  return [
    ...["-device", `${DISPLAY_DEVICES[display]},id=display`, "-device", "qemu-xhci,id=usb"],
    ...["-device", "usb-tablet,id=tablet,bus=usb.0", "-vnc", `unix:${GUEST_FILES.display}`],
  ];
}

/** The same machine in rescue mode: it boots from the rescue disk or its kernel, and has its own disks behind that disk. */
export function rescuedMachine(machine: VirtualMachine, kernel: MachineKernel | null): VirtualMachine {
  return { ...machine, disks: [RESCUE_DISK, ...machine.disks], kernel };
}

/** In QEMU's options a comma ends a value unless it is doubled. */
const escaped = (value: string): string => value.replaceAll(",", ",,");
