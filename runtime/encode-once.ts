const known = new WeakMap<object, Uint8Array>();

/** A kind of message, as protobuf code is generated. */
interface Codec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Message;
}

/**
 * The message's bytes, made once and kept as long as the message is: what goes to several places is dearer to encode than to send. The
 * message must not change any more.
 */
export function encodeOnce<Message extends object>(codec: Codec<Message>, message: Message): Uint8Array {
  let bytes = known.get(message);
  if (bytes === undefined) {
    bytes = codec.encode(message).finish();
    known.set(message, bytes);
  }
  return bytes;
}

/**
 * The message, whose bytes `encodeOnce` then knows: what is read from one place to be written to another is not encoded again, and keeps
 * what a newer version wrote and this one does not know. The bytes must not change any more.
 */
export function decodeKept<Message extends object>(codec: Codec<Message>, bytes: Uint8Array): Message {
  const message = codec.decode(bytes);
  known.set(message, bytes);
  return message;
}
