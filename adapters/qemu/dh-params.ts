import { getDiffieHellman } from "node:crypto";

/** The group of 2048 bits in RFC 3526. */
const GROUP = "modp14";
const [INTEGER, SEQUENCE] = [0x02, 0x30];

/**
 * A group for Diffie-Hellman in the form in which GnuTLS reads it (`dh-params.pem`). A QEMU that waits for a transfer with TLS makes a group of its
 * own if it finds none, even if the connection will not need it: that takes up to a second of CPU, in which this QEMU answers nothing.
 */
export function dhParams(): string {
  const group = getDiffieHellman(GROUP);
  const der = tlv(SEQUENCE, Buffer.concat([integer(group.getPrime()), integer(group.getGenerator())]));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN DH PARAMETERS-----", ...lines, "-----END DH PARAMETERS-----", ""].join("\n");
}

/** A positive number in DER: a first bit that is set would make it negative. */
function integer(value: Buffer): Buffer {
  return tlv(INTEGER, ((value[0] ?? 0) & 0x80) === 0 ? value : Buffer.concat([Buffer.of(0), value]));
}

function tlv(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const size = length < 0x80 ? Buffer.of(length) : Buffer.of(0x82, length >> 8, length & 0xff);
  return Buffer.concat([Buffer.of(tag), size, value]);
}
