import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { VolumeFile } from "./mounted-volumes.ts";
import { QemuError } from "./qemu-error.ts";

const MAGIC = 0x51_46_49_fb;
/** The header with its extensions is in the first cluster, and this is the size of a cluster that Cinder makes. */
const HEADER_BYTES_MAX = 64 << 10;
const HEADER_BYTES_MIN = 72;
const BACKING_FORMAT = 0xe2_79_2a_ca;
/** The feature that keeps the data of an image in another file. */
const EXTERNAL_DATA = 1n << 2n;
/** Files of a volume: one for each of its snapshots, and one more. */
const FILES_MAX = 100;

interface Header {
  readonly hasExternalData: boolean;
  /** Empty for none. */
  readonly backing: string;
  /** The backing file's format; empty if the header does not name it. */
  readonly backingFormat: string;
}

/**
 * Follows a qcow2 volume to the files that hold what it does not hold itself: Cinder's NFS driver makes such a file for each snapshot. Each of them must
 * be the volume's own, and its format must be named. Rejects with a QemuError for a file that refers to anything else, since a guest that can write to
 * the whole of a file may have written that header, to read files of its host or volumes of other projects.
 *
 * `open` opens one of the files, which must be a regular one.
 *
 * Source: docs/interop/qcow2.txt of QEMU; the names of files: `RemoteFSSnapDriverBase` of Cinder
 */
export async function withBacking(
  file: VolumeFile,
  open: (path: string) => Promise<FileHandle>,
  filesMax = FILES_MAX,
): Promise<VolumeFile> {
  const header = await readHeader(file, open);
  if (header === null) return file;
  const { backing, backingFormat: format, hasExternalData } = header;
  if (hasExternalData) throw unusable(file, "it keeps its data in another file");
  if (backing === "") return file;
  const [own = ""] = basename(file.path).split(".");
  if (basename(backing) !== backing || (backing !== own && !backing.startsWith(`${own}.`)))
    throw unusable(file, `it refers to the file "${backing.slice(0, 100)}", which is not one of the volume's own`);
  if (format !== "raw" && format !== "qcow2")
    throw unusable(
      file,
      `it names the format "${format.slice(0, 100)}" for the file it refers to; allowed: raw, qcow2`,
    );
  if (filesMax <= 1) throw unusable(file, `it refers to more than ${FILES_MAX} files`);
  const next = { path: join(dirname(file.path), backing), format } as const;
  return { ...file, backing: await withBacking(next, open, filesMax - 1) };
}

/** Null for a raw file, which is opened all the same, to see that it can be used. */
async function readHeader(file: VolumeFile, open: (path: string) => Promise<FileHandle>): Promise<Header | null> {
  const opened = await open(file.path);
  try {
    if (file.format === "raw") return null;
    const buffer = Buffer.alloc(HEADER_BYTES_MAX);
    const { bytesRead } = await opened.read(buffer, 0, HEADER_BYTES_MAX, 0);
    return headerOf(file, buffer.subarray(0, bytesRead));
  } finally {
    await opened.close();
  }
}

function headerOf(file: VolumeFile, bytes: Buffer): Header {
  if (bytes.length < HEADER_BYTES_MIN || bytes.readUInt32BE(0) !== MAGIC)
    throw unusable(file, "its content is not in the format qcow2");
  try {
    const isOld = bytes.readUInt32BE(4) < 3;
    const backingAt = bytes.readBigUInt64BE(8);
    const backingBytes = bytes.readUInt32BE(16);
    if (backingAt + BigInt(backingBytes) > BigInt(bytes.length)) throw new RangeError("outside of the header");
    return {
      hasExternalData: !isOld && (bytes.readBigUInt64BE(72) & EXTERNAL_DATA) !== 0n,
      backing: backingAt === 0n ? "" : bytes.toString("utf8", Number(backingAt), Number(backingAt) + backingBytes),
      backingFormat: backingFormatOf(bytes, isOld ? HEADER_BYTES_MIN : bytes.readUInt32BE(100)),
    };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw unusable(file, "its header is damaged, or larger than 64 KiB");
  }
}

function backingFormatOf(bytes: Buffer, extensionsAt: number): string {
  for (let at = extensionsAt; ; ) {
    const [type, length] = [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)];
    if (type === 0) return "";
    if (type === BACKING_FORMAT) return bytes.toString("utf8", at + 8, at + 8 + length);
    at += 8 + Math.ceil(length / 8) * 8;
  }
}

const unusable = ({ path }: VolumeFile, why: string): QemuError =>
  new QemuError("storage", `${path} is not used as a volume: ${why}`);
