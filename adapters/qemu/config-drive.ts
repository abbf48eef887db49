import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runTool } from "./run-tool.ts";

/** The metadata that a guest gets about itself, in the format of OpenStack's metadata service. */
export interface GuestMetadata {
  readonly uuid: string;
  readonly name: string;
  readonly hostname: string;
  readonly projectId: string;
  readonly availabilityZone: string;
  /** Position among the servers of one call. */
  readonly launchIndex: number;
  /** The items that the server's owner set. */
  readonly meta: Readonly<Record<string, string>>;
  /** User data as it is handed to the guest, or null. */
  readonly userData: Buffer | null;
  /** Public keys by their names. */
  readonly publicKeys: Readonly<Record<string, string>>;
  /** Files that the guest's own agent, such as cloud-init, writes at its first boot. */
  readonly files: readonly { readonly path: string; readonly contents: Buffer }[];
  readonly interfaces: readonly { readonly mac: string; readonly portId: string; readonly networkId: string }[];
}

const LABEL = "config-2";
/** The folder of the files whose paths the metadata lists. */
const CONTENT = "content";
/** The oldest layout that has all of this, and the one that guests ask for first. */
const VERSIONS = ["2018-08-27", "latest"];

/**
 * Writes a config drive, an ISO image that guests find by its label (Nova: the layout of its config drives). The same metadata makes the same
 * files. Needs genisoimage.
 */
export async function writeConfigDrive(path: string, metadata: GuestMetadata, signal?: AbortSignal): Promise<void> {
  const dir = await mkdtemp(`${path}-`);
  try {
    for (const version of VERSIONS) {
      const folder = join(dir, "openstack", version);
      await mkdir(folder, { recursive: true });
      for (const [name, content] of documentsOf(metadata)) await writeFile(join(folder, name), content);
    }
    if (metadata.files.length > 0) await mkdir(join(dir, "openstack", CONTENT));
    for (const [index, { contents }] of metadata.files.entries())
      await writeFile(join(dir, "openstack", CONTENT, contentName(index)), contents);
    const args = ["-quiet", "-J", "-r", "-ldots", "-allow-lowercase", "-V", LABEL, "-o", path, dir];
    await runTool("genisoimage", args, signal);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const contentName = (index: number): string => String(index).padStart(4, "0");

function documentsOf(metadata: GuestMetadata): readonly (readonly [name: string, content: string | Buffer])[] {
  const documents: (readonly [string, string | Buffer])[] = [
    ["meta_data.json", JSON.stringify(metaDataOf(metadata))],
    ["network_data.json", JSON.stringify(networkDataOf(metadata))],
    ["vendor_data.json", "{}"],
  ];
  return metadata.userData === null ? documents : [...documents, ["user_data", metadata.userData]];
}

function metaDataOf(metadata: GuestMetadata): object {
  const { uuid, name, hostname, projectId, availabilityZone, launchIndex, meta, publicKeys, files } = metadata;
  const contents = files.map(({ path }, index) => ({ path, content_path: `/${CONTENT}/${contentName(index)}` }));
  const keys = Object.entries(publicKeys).map(([key, data]) => ({ name: key, type: "ssh", data }));
  return {
    ...{
      uuid,
      name,
      hostname,
      project_id: projectId,
      availability_zone: availabilityZone,
      launch_index: launchIndex,
      meta,
    },
    ...(keys.length > 0 && { public_keys: publicKeys, keys }),
    ...(contents.length > 0 && { files: contents }),
  };
}

function networkDataOf({ interfaces }: GuestMetadata): object {
  return {
    links: interfaces.map(({ mac, portId }, index) => ({
      ...{ id: `tap${portId.slice(0, 11)}`, vif_id: portId, type: "phy", mtu: null, ethernet_mac_address: mac },
      name: `net${index}`,
    })),
    networks: interfaces.map(({ portId, networkId }, index) => ({
      ...{ id: `network${index}`, type: "ipv4_dhcp", link: `tap${portId.slice(0, 11)}`, network_id: networkId },
    })),
    services: [],
  };
}
