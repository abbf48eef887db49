import type { QemuMonitor } from "./qemu-guest.ts";

/** A disk, a volume, or a file beneath one, that a guest's QEMU has open. */
interface BlockNode {
  readonly "node-name": string;
  /** The driver of its format, or `file` for the file itself. */
  readonly drv?: string;
  /** Its path, or a description of it in JSON. */
  readonly file?: string;
  readonly image?: {
    readonly "virtual-size"?: number;
    /** The name in its header of the file that it refers to. */
    readonly "backing-filename"?: string;
    readonly "format-specific"?: { readonly data?: Readonly<Record<string, unknown>> };
  };
}

export async function blockNodes(guest: QemuMonitor): Promise<readonly BlockNode[]> {
  return (await guest.execute("query-named-block-nodes", { flat: true })) as readonly BlockNode[];
}

async function findNode(guest: QemuMonitor, node: string): Promise<BlockNode | undefined> {
  return (await blockNodes(guest)).find((one) => one["node-name"] === node);
}

export async function hasNode(guest: QemuMonitor, node: string): Promise<boolean> {
  return (await findNode(guest, node)) !== undefined;
}

/** The size that the guest sees. Undefined if QEMU does not have the node, or does not say. */
export async function nodeBytes(guest: QemuMonitor, node: string): Promise<number | undefined> {
  return (await findNode(guest, node))?.image?.["virtual-size"];
}

/** Whether QEMU has opened another file for the data of a qcow2 file: a header that names one cannot be overruled. */
export async function hasExternalData(guest: QemuMonitor, node: string): Promise<boolean> {
  const found = await findNode(guest, node);
  return found?.image?.["format-specific"]?.data?.["data-file"] !== undefined;
}

/** Closes the node, if QEMU has it. */
export async function removeNode(guest: QemuMonitor, node: string): Promise<void> {
  if (await hasNode(guest, node)) await guest.execute("blockdev-del", { "node-name": node });
}
