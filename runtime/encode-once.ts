import { encodeMessage, type MessageEncoder } from "./encode-message.ts";

const known = new WeakMap<object, Uint8Array>();

/** The part of a generated protobuf message type that this module needs. */
interface Codec<Message> extends MessageEncoder<Message> {
  decode(bytes: Uint8Array): Message;
}

/**
 * Encodes the message once and keeps its bytes as long as the message exists, because encoding costs more than sending and some messages go
 * to several places. The message must not change after this call.
 */
export function encodeOnce<Message extends object>(codec: Codec<Message>, message: Message): Uint8Array {
  let bytes = known.get(message);
  if (bytes === undefined) {
    bytes = encodeMessage(codec, message);
    known.set(message, bytes);
  }
  return bytes;
}

/**
 * Decodes a message and remembers its bytes for `encodeOnce`. A message that is read from one place and written to another is then not
 * encoded again, and keeps fields of newer versions that this one does not know. Neither message nor bytes may change after this call.
 */
export function decodeKept<Message extends object>(codec: Codec<Message>, bytes: Uint8Array): Message {
  const message = codec.decode(bytes);
  known.set(message, bytes);
  return message;
}
