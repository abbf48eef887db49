import { createHash } from "node:crypto";
import { join, resolve, sep } from "node:path";
import { QemuError } from "./qemu-error.ts";

/** A file that is a guest's volume, and how its content is to be read. */
export interface VolumeFile {
  readonly path: string;
  readonly format: "raw" | "qcow2";
  /** The file that holds what this one does not. Absent for none. */
  readonly backing?: VolumeFile;
}

const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
/**
 * The end of the name of a file that Cinder has made for a snapshot, in the format qcow2: the id of the volume, and that of the snapshot. Before its release 28, Cinder states the format of a
 * volume's first file for the others, too. A name is Cinder's alone, unlike a file's content, so it can be trusted.
 *
 * Source: `_create_snapshot` of `RemoteFSSnapDriverBase`
 */
const OF_SNAPSHOT = new RegExp(`${UUID}\\.(?:tmp-snap-)?${UUID}$`);

const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/;

/**
 * Finds the file of a volume that Cinder has connected to this host. `mounts` is the directory below which the exports of Cinder's drivers are mounted, each
 * under the MD5 sum of its name, as Nova and Cinder mount them. Mounting them is the operator's work, since an agent is not root.
 *
 * Understands `nfs` and `local`, and rejects other connections with a QemuError that names them. A path outside the directory is refused, whatever Cinder says.
 *
 * Source: `LibvirtMountedFileSystemVolumeDriver` of Nova, `RemoteFsClient.get_mount_point` of os-brick
 */
export function mountedFile(volumeId: string, connection: string, mounts: string | null): VolumeFile {
  const { driver_volume_type: type, export: exported, name, device_path: device, ...stated } = fieldsOf(connection);
  const format = OF_SNAPSHOT.test(String(name ?? device)) ? "qcow2" : (stated.format ?? "raw");
  if (mounts === null)
    throw new QemuError(
      "unavailable",
      `volume ${volumeId} is in Cinder, and this host has no directory of Cinder's exports: give its agent --volume-mounts`,
    );
  if (format !== "raw" && format !== "qcow2")
    throw new QemuError("storage", `volume ${volumeId} has the format "${shortened(format)}"; supported: raw, qcow2`);
  if (type === "nfs") {
    if (typeof exported !== "string" || typeof name !== "string" || !FILE_NAME.test(name))
      throw new QemuError("storage", `Cinder names no export and file for volume ${volumeId}`);
    // Not for security: the name of a directory that others choose in the same way.
    const directory = createHash("md5").update(exported).digest("hex");
    return { path: join(mounts, directory, name), format };
  }
  if (type === "local") {
    const path = typeof device === "string" ? resolve(device) : "";
    if (!path.startsWith(`${resolve(mounts)}${sep}`))
      throw new QemuError(
        "storage",
        `Cinder names the path "${shortened(device)}" for volume ${volumeId}, which is not below ${mounts}`,
      );
    return { path, format };
  }
  throw new QemuError(
    "storage",
    `volume ${volumeId} is connected by "${shortened(type)}", which this host's driver cannot use; it can use nfs and local`,
  );
}

function fieldsOf(connection: string): Readonly<Record<string, unknown>> {
  try {
    const fields: unknown = JSON.parse(connection);
    return typeof fields === "object" && fields !== null ? (fields as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const shortened = (value: unknown): string => String(value).slice(0, 100);
