import { BinaryReader } from "@bufbuild/protobuf/wire";

/**
 * Decodes a message of a peer that may be broken or compromised. Throws when the bytes are no such message, and when they have more than
 * `numbersMax` tags and lengths, which generated code reads as numbers: an empty message takes two bytes on the wire and a hundred in memory,
 * so a bound of the bytes alone does not bound the memory.
 */
export function decodeBounded<Message>(
  codec: { decode(reader: BinaryReader): Message },
  bytes: Uint8Array,
  numbersMax: number,
): Message {
  return codec.decode(new BoundedReader(bytes, numbersMax));
}

/** Generated code reads tags and lengths with `uint32`, and short numbers, too. */
class BoundedReader extends BinaryReader {
  constructor(bytes: Uint8Array, numbersMax: number) {
    super(bytes);
    // It is an own property in the base class, too.
    const read = this.uint32;
    let count = 0;
    this.uint32 = () => {
      count += 1;
      if (count > numbersMax)
        throw new Error(
          `a message of ${bytes.length} bytes has more than ${Math.floor(numbersMax)} fields and lengths`,
        );
      return read.call(this);
    };
  }
}
