/** A device of the host that one guest has for itself: a PCI function, or a mediated device (a vGPU, for example) of a PCI function. */
export type HostDevice =
  | { readonly kind: "pci"; readonly address: string }
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
}

/** The name under which a device is found on its machine: its address, or the UUID of a mediated device. */
export const deviceName = (device: HostDevice): string => (device.kind === "pci" ? device.address : device.uuid);
