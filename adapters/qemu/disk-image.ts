import { open } from "node:fs/promises";
import { QemuError } from "./qemu-error.ts";
import { runTool } from "./run-tool.ts";

export type ImageFormat = "qcow2" | "raw";

/** The facts about an image that decide whether a guest's disk can be built on it. */
export interface ImageFacts {
  readonly format: ImageFormat;
  /** Size of the disk that a guest sees, in bytes. */
  readonly virtualBytes: number;
}

const QCOW2_MAGIC = 0x51_46_49_fb;
const HEADER_BYTES = 4;
/** Magic numbers of formats that Berth does not use, so that such an image is not mistaken for a raw disk. */
const OTHER_MAGICS: readonly (readonly [name: string, magic: string])[] = [
  ["VMDK", "4b444d56"],
  ["QED", "51454400"],
  ["VHDX", "76686478"],
  ["VHD", "636f6e65"],
  ["LUKS", "4c554b53"],
];

/**
 * Looks at an image before anything is built on it. Throws a QemuError (final) for an image that refers to other files, such as a backing file
 * or an external data file: a user who uploads it could read the host's files (Nova: LP 2059809). QEMU is always told the format and never
 * guesses it.
 */
export async function inspectImage(path: string, declared: ImageFormat | null): Promise<ImageFacts> {
  const format = await formatOf(path);
  if (declared !== null && declared !== format)
    throw unusable(`it was declared as ${declared}, but its content is ${format}`);
  const info = parseInfo(await runTool("qemu-img", ["info", "--output=json", "-f", format, path]));
  if (info["backing-filename"] !== undefined) throw unusable("it has a backing file");
  const specific = (info["format-specific"] as { readonly data?: Readonly<Record<string, unknown>> } | undefined)?.data;
  if (specific?.["data-file"] !== undefined) throw unusable("it keeps its data in another file");
  if (specific?.encrypt !== undefined || info.encrypted === true) throw unusable("it is encrypted");
  const virtualBytes = info["virtual-size"];
  if (typeof virtualBytes !== "number" || !Number.isSafeInteger(virtualBytes)) throw unusable("it has no size");
  return { format, virtualBytes };
}

/** Creates a qcow2 image. With `base` it holds only what differs from that image, which must stay unchanged. */
export async function createDisk(
  path: string,
  bytes: number,
  base: { readonly path: string; readonly format: ImageFormat } | null,
): Promise<void> {
  const backing = base === null ? [] : ["-b", base.path, "-F", base.format];
  await runTool("qemu-img", ["create", "-q", "-f", "qcow2", ...backing, path, String(bytes)]);
}

async function formatOf(path: string): Promise<ImageFormat> {
  const file = await open(path);
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    await file.read(header, 0, HEADER_BYTES, 0);
    if (header.readUInt32BE(0) === QCOW2_MAGIC) return "qcow2";
    const other = OTHER_MAGICS.find(([, magic]) => header.toString("hex") === magic);
    if (other !== undefined) throw unusable(`it is a ${other[0]} image; allowed: qcow2, raw`);
    return "raw";
  } finally {
    await file.close();
  }
}

function parseInfo(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new QemuError(
      "image",
      "the image cannot be used: qemu-img did not describe it in a form that Berth can read",
      { cause: error },
    );
  }
}

const unusable = (why: string): QemuError =>
  new QemuError("image", `the image cannot be used: ${why}`, { isFinal: true });
