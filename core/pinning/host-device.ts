/** A port of the server whose interface in the guest is a virtual function of the host's network card. */
export interface DevicePort {
  readonly portId: string;
  /** The MAC address that the virtual function gets before the guest starts. */
  readonly mac: string;
  /** The slot of the guest's interface, as in `ServerPort`. */
  readonly slot: number;
  /** How the port is connected on this host. Null while this is not known; the guest is not started then. */
  readonly connection: PortConnection | null;
  /** What Neutron's agent on the host needs to know of the function, as in `DevicePlace`. Absent where it is unknown. */
  readonly vendorInfo?: string | undefined;
  readonly physicalNetwork?: string | undefined;
}

/** How a port is connected on a host, as Neutron says. */
export interface PortConnection {
  /** 0 for a network without VLANs. */
  readonly vlan: number;
  /** Whether the guest may change the function's MAC address, and hear frames that are not for it. */
  readonly isTrusted: boolean;
}

/** A device of the host that one guest has for itself: a PCI function, or a mediated device (a vGPU, for example) of a PCI function. */
export type HostDevice =
  | {
      readonly kind: "pci";
      readonly address: string;
      /** The port that the function connects. Absent for a function that no port has asked for. */
      readonly port?: DevicePort | undefined;
    }
  | {
      readonly kind: "mdev";
      readonly uuid: string;
      readonly parent: string;
      readonly type: string;
      /** Whether the host had the device before a guest got it. Then it stays when the guest is destroyed, since others made it. */
      readonly isFound?: true | undefined;
    };

/** The function and the type of which mediated devices are made. */
export interface MdevSource {
  readonly parent: string;
  readonly type: string;
}

/** What a resource provider of devices stands for on its machine. */
export interface DevicePlace {
  /** The provider's UUID. */
  readonly provider: string;
  readonly resourceClass: string;
  /** The PCI functions that guests get. Empty for mediated devices. */
  readonly addresses: readonly string[];
  /** Of what mediated devices are made, or null. */
  readonly mdev: MdevSource | null;
  /** How many displays each of the mediated devices can drive. Absent where the driver names none. */
  readonly headsOfEach?: number | undefined;
  /** The functions' vendor and product, as `8086:154c`. Absent where it is unknown, and for mediated devices. */
  readonly vendorInfo?: string | undefined;
  /** The physical network that the functions' card is connected to. Absent where it is unknown. */
  readonly physicalNetwork?: string | undefined;
}

/** A PCI function that connects a port. */
export type PortFunction = Extract<HostDevice, { readonly kind: "pci" }> & { readonly port: DevicePort };

/** The devices of a guest that connect ports. */
export const portFunctions = (devices: readonly HostDevice[] | undefined): readonly PortFunction[] =>
  (devices ?? []).filter((device): device is PortFunction => device.kind === "pci" && device.port !== undefined);

/** The name under which a device is found on its machine: its address, or the UUID of a mediated device. */
export const deviceName = (device: HostDevice): string => (device.kind === "pci" ? device.address : device.uuid);
