import { BinaryWriter } from "@bufbuild/protobuf/wire";

/** The part of a generated protobuf message type that this module needs. */
export interface MessageEncoder<Message> {
  encode(message: Message, writer?: BinaryWriter): { finish(): Uint8Array };
}

/** A writer whose buffer has grown beyond this, for one large message, is not kept. */
const KEPT_BYTES_MAX = 262_144;

let idle: BinaryWriter | null = null;

/**
 * Encodes a message. All calls share one writer, because a new one begins with a small buffer and replaces it by one of twice the size again
 * and again, which costs more than the encoding. The result is a copy of its own. Throws what the encoder throws, for example for a number out
 * of range.
 */
export function encodeMessage<Message>(encoder: MessageEncoder<Message>, message: Message): Uint8Array {
  const writer = idle ?? new BinaryWriter();
  // While it is in use, and after an error in the middle of a message, it is not kept.
  idle = null;
  const bytes = encoder.encode(message, writer).finish();
  if (bytes.length <= KEPT_BYTES_MAX) idle = writer;
  return bytes;
}
