/** How many bytes of the beginning of an image tell its format. */
export const HEADER_BYTES = 104;

const QCOW2_MAGIC = 0x51_46_49_fb;
const QCOW2_BACKING_OFFSET = 8;
const QCOW2_SIZE = 24;
const QCOW2_INCOMPATIBLE_FEATURES = 72;
const QCOW2_EXTERNAL_DATA = 1n << 2n;
/** The formats whose beginning is known, other than qcow2. */
const MAGICS: readonly (readonly [format: string, magic: string])[] = [
  ["vmdk", "4b444d56"],
  ["qed", "51454400"],
  ["vhdx", "76686478"],
  ["vhd", "636f6e65"],
  ["luks", "4c554b53"],
];

/**
 * Judges the beginning of an image against the format that its owner declared. Returns the size of the disk that a guest sees, null if the format
 * does not state it, or why the image is refused: its content has another format, or it refers to another file, such as a backing file or an
 * external data file, which could be a file of the host that reads it. Hosts look at the whole image again before they use it.
 *
 * Source: QEMU's docs/interop/qcow2.txt.
 */
export function judgeHeader(
  header: Buffer,
  declared: string,
): { readonly virtualBytes: number | null } | { readonly refused: string } {
  const found = formatOf(header);
  if (declared === "qcow2" || found === "qcow2") {
    if (found !== declared) return { refused: `disk_format is ${declared}, but the content is ${found ?? "raw"}` };
    return judgeQcow2(header);
  }
  if (declared === "raw" && found !== null) return { refused: `disk_format is raw, but the content is ${found}` };
  return { virtualBytes: null };
}

function judgeQcow2(header: Buffer): { readonly virtualBytes: number } | { readonly refused: string } {
  if (header.length < QCOW2_INCOMPATIBLE_FEATURES) return { refused: "the content ends within the header of qcow2" };
  if (header.readBigUInt64BE(QCOW2_BACKING_OFFSET) !== 0n) return { refused: "the image has a backing file" };
  const version = header.readUInt32BE(4);
  const features =
    version >= 3 && header.length >= QCOW2_INCOMPATIBLE_FEATURES + 8
      ? header.readBigUInt64BE(QCOW2_INCOMPATIBLE_FEATURES)
      : 0n;
  if ((features & QCOW2_EXTERNAL_DATA) !== 0n) return { refused: "the image keeps its data in another file" };
  const virtualBytes = Number(header.readBigUInt64BE(QCOW2_SIZE));
  return Number.isSafeInteger(virtualBytes)
    ? { virtualBytes }
    : { refused: `the image's disk has ${virtualBytes} bytes` };
}

/** The format that the beginning tells; null for none, as a raw disk has. */
function formatOf(header: Buffer): string | null {
  if (header.length >= 4 && header.readUInt32BE(0) === QCOW2_MAGIC) return "qcow2";
  const beginning = header.subarray(0, 4).toString("hex");
  return MAGICS.find(([, magic]) => magic === beginning)?.[0] ?? null;
}
