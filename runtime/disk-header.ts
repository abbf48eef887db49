/** How many bytes of the beginning of an image tell its format. */
export const HEADER_BYTES = 104;

const QCOW2_MAGIC = 0x51_46_49_fb;
const QCOW2_VERSION = 4;
const QCOW2_BACKING_OFFSET = 8;
const QCOW2_SIZE = 24;
const QCOW2_SNAPSHOTS = 60;
const QCOW2_INCOMPATIBLE_FEATURES = 72;
/** The end of the fields that every header of a version has. */
const QCOW2_FIELDS_END: ReadonlyMap<number, number> = new Map([
  [2, 72],
  [3, 104],
]);
const QCOW2_EXTERNAL_DATA = 1n << 2n;
/** Dirty, corrupt, external data, compression type, extended L2 entries. QEMU opens no image with another one. */
const QCOW2_KNOWN_INCOMPATIBLE = 0b1_1111n;
/** QEMU's tools list every internal snapshot, and whoever looks at an image reads this list. */
const QCOW2_SNAPSHOTS_MAX = 1_000;
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
 * does not state it, or why the image is refused: its content has another format, QEMU cannot read it, or it refers to another file, such as a
 * backing file or an external data file, which could be a file of the host that reads it. Hosts look at the whole image again before they use it.
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

/** Judges the header of a qcow2 image, which begins with its magic number. */
export function judgeQcow2(header: Buffer): { readonly virtualBytes: number } | { readonly refused: string } {
  const ended = { refused: "the content ends within the header of qcow2" };
  if (header.length < QCOW2_VERSION + 4) return ended;
  const version = header.readUInt32BE(QCOW2_VERSION);
  const fieldsEnd = QCOW2_FIELDS_END.get(version);
  if (fieldsEnd === undefined) return { refused: `the image has version ${version} of qcow2; allowed: 2, 3` };
  if (header.length < fieldsEnd) return ended;
  if (header.readBigUInt64BE(QCOW2_BACKING_OFFSET) !== 0n) return { refused: "the image has a backing file" };
  const features = version === 2 ? 0n : header.readBigUInt64BE(QCOW2_INCOMPATIBLE_FEATURES);
  if ((features & QCOW2_EXTERNAL_DATA) !== 0n) return { refused: "the image keeps its data in another file" };
  const unknown = features & ~QCOW2_KNOWN_INCOMPATIBLE;
  if (unknown !== 0n)
    return { refused: `the image needs features of qcow2 that QEMU does not know (0x${unknown.toString(16)})` };
  const snapshots = header.readUInt32BE(QCOW2_SNAPSHOTS);
  if (snapshots > QCOW2_SNAPSHOTS_MAX)
    return { refused: `the image has ${snapshots} internal snapshots; allowed: up to ${QCOW2_SNAPSHOTS_MAX}` };
  const virtualBytes = Number(header.readBigUInt64BE(QCOW2_SIZE));
  return Number.isSafeInteger(virtualBytes)
    ? { virtualBytes }
    : { refused: `the image's disk has ${virtualBytes} bytes` };
}

/** The size of the disk that a guest sees in a qcow2 image with this header; null for another beginning. */
export function qcow2BytesOf(header: Buffer): number | null {
  return isQcow2(header) && header.length >= QCOW2_SIZE + 8 ? Number(header.readBigUInt64BE(QCOW2_SIZE)) : null;
}

/** Whether an image with this beginning has the format qcow2. */
export const isQcow2 = (header: Buffer): boolean => header.length >= 4 && header.readUInt32BE(0) === QCOW2_MAGIC;

/** The format that the beginning tells; null for none, as a raw disk has. */
export function formatOf(header: Buffer): string | null {
  if (isQcow2(header)) return "qcow2";
  const beginning = header.subarray(0, 4).toString("hex");
  return MAGICS.find(([, magic]) => magic === beginning)?.[0] ?? null;
}
