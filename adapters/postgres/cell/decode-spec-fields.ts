import { BinaryReader } from "@bufbuild/protobuf/wire";
import { SPEC_FIELDS, type SpecField } from "../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** The numbers of the fields in `proto/berth/shared.proto`. */
const NUMBERS: Readonly<Record<SpecField, number>> = {
  ...{ uuid: 1, name: 2, projectId: 3, userId: 4, flavor: 5, imageRef: 6, availabilityZone: 8, requestId: 9 },
  ...{ imageProperties: 11, hostname: 19, description: 20, accessIpV4: 22, accessIpV6: 23, keyName: 24 },
  ...{ configDrive: 27, manualDisk: 28, launchIndex: 29 },
};

const EMPTY = ServerSpec.fromPartial({});

/**
 * Returns a decoder of some fields of encoded specs. All other fields have the values of an empty spec. The decoder throws for bytes that are no message.
 *
 * A list may have thousands of specs, of which it is sorted by one field, and a full decoding takes two to three times as long.
 */
export function specFieldsDecoder(fields: readonly SpecField[]): (bytes: Uint8Array) => ServerSpec {
  const isWanted: readonly boolean[] = wantedOf(fields);
  return (bytes) => {
    let start = 0;
    let end = 0;
    let before: Uint8Array[] | null = null;
    for (let at = 0; at < bytes.length; ) {
      const fieldAt = at;
      // The numbers of all fields fit into a tag of two bytes.
      let tag = bytes[at++]!;
      if (tag >= 0x80) tag = (tag & 0x7f) | (bytes[at++]! << 7);
      at = endOfValue(bytes, at, tag & 0x7);
      if (isWanted[tag >>> 3] !== true) continue;
      // Fields that follow each other are decoded where they are.
      if (end !== fieldAt && end > start) {
        before ??= [];
        before.push(bytes.subarray(start, end));
      }
      if (end !== fieldAt || end === start) start = fieldAt;
      end = at;
    }
    if (start === end) return EMPTY;
    if (before !== null) return ServerSpec.decode(Buffer.concat([...before, bytes.subarray(start, end)]));
    const reader = new BinaryReader(bytes);
    reader.pos = start;
    return ServerSpec.decode(reader, end - start);
  };
}

function wantedOf(fields: readonly SpecField[]): readonly boolean[] {
  const isWanted: boolean[] = Array(Math.max(...SPEC_FIELDS.map((field) => NUMBERS[field])) + 1).fill(false);
  for (const field of fields) isWanted[NUMBERS[field]] = true;
  return isWanted;
}

/** Returns where the value ends that begins at `at`, by its wire type: a number of seven bits a byte, of 8 bytes or of 4, or bytes after their length. */
function endOfValue(bytes: Uint8Array, at: number, wireType: number): number {
  if (wireType === 1) return at + 8;
  if (wireType === 5) return at + 4;
  if (wireType !== 0 && wireType !== 2) throw new Error(`An encoded spec has a field of the wire type ${wireType}.`);
  let end = at;
  let number = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[end++]!;
    number |= (byte & 0x7f) << shift;
    if (!(byte >= 0x80)) break;
  }
  // Bits beyond the 32nd fall away. A length of that size would be beyond the end.
  return wireType === 0 ? end : end + (number >>> 0);
}
