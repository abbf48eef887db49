import { open } from "node:fs/promises";
import { QemuError } from "./qemu-error.ts";

const SECTOR = 2_048;
/** The first of the volume descriptors, which tell where the directories are. */
const DESCRIPTORS_AT = 16;
const DESCRIPTORS_MAX = 16;
/** The largest image that is read. The files of a server are far smaller. */
const BYTES_MAX = 64 * 1_048_576;
const FILES_MAX = 10_000;
const DEPTH_MAX = 16;

/** The descriptor of the directories with long names (Joliet), and the end of the descriptors. */
const SUPPLEMENTARY = 2;
const TERMINATOR = 255;
const IS_DIRECTORY = 2;

/**
 * Reads the files of an ISO image by their paths (`openstack/latest/user_data`), with the long names of Joliet. Rejects with a QemuError for an image that is
 * damaged, too large, or without such names. Source: ECMA-119, and the Joliet specification.
 */
export async function readIsoFiles(path: string): Promise<ReadonlyMap<string, Buffer>> {
  const image = await readLimited(path);
  const files = new Map<string, Buffer>();
  const descriptor = joliet(image, path);
  collect(image, { path, files, folder: "", record: descriptor.subarray(156, 190), depth: 0 });
  return files;
}

interface Walk {
  readonly path: string;
  readonly files: Map<string, Buffer>;
  readonly folder: string;
  /** The directory record of the folder. */
  readonly record: Buffer;
  readonly depth: number;
}

function collect(image: Buffer, { path, files, folder, record, depth }: Walk): void {
  const entries = extentOf(image, record, path);
  for (let at = 0; at < entries.length; ) {
    const length = entries[at] ?? 0;
    if (length === 0) {
      // A record never crosses a sector's end, so the rest of the sector is empty.
      at = (Math.floor(at / SECTOR) + 1) * SECTOR;
      continue;
    }
    const entry = entries.subarray(at, at + length);
    at += length;
    const nameBytes = entry.length < 34 ? 0 : (entry[32] ?? 0);
    if (nameBytes === 0 || 33 + nameBytes > entry.length) throw damaged(path);
    // The entries `.` and `..` have names of one byte.
    if (nameBytes === 1) continue;
    const name = Buffer.from(entry.subarray(33, 33 + nameBytes))
      .swap16()
      .toString("utf16le")
      .replace(/;1$/, "");
    if (files.size >= FILES_MAX || depth >= DEPTH_MAX) throw damaged(path);
    if (((entry[25] ?? 0) & IS_DIRECTORY) === 0) files.set(`${folder}${name}`, extentOf(image, entry, path));
    else collect(image, { path, files, folder: `${folder}${name}/`, record: entry, depth: depth + 1 });
  }
}

/** The bytes that a directory record points to. */
function extentOf(image: Buffer, record: Buffer, path: string): Buffer {
  const from = record.readUInt32LE(2) * SECTOR;
  const bytes = record.readUInt32LE(10);
  if (from + bytes > image.length) throw damaged(path);
  return image.subarray(from, from + bytes);
}

function joliet(image: Buffer, path: string): Buffer {
  for (let sector = DESCRIPTORS_AT; sector < DESCRIPTORS_AT + DESCRIPTORS_MAX; sector += 1) {
    const descriptor = image.subarray(sector * SECTOR, (sector + 1) * SECTOR);
    if (descriptor.length < SECTOR || descriptor.toString("latin1", 1, 6) !== "CD001") break;
    if (descriptor[0] === TERMINATOR) break;
    const names = descriptor.toString("latin1", 88, 91);
    if (descriptor[0] === SUPPLEMENTARY && ["%/@", "%/C", "%/E"].includes(names)) return descriptor;
  }
  throw damaged(path);
}

async function readLimited(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size > BYTES_MAX) throw new QemuError("storage", `${path} is larger than ${BYTES_MAX} bytes`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

const damaged = (path: string): QemuError =>
  new QemuError("storage", `${path} is damaged, or is no ISO image with the names of Joliet`);
