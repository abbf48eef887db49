import { createHash, X509Certificate } from "node:crypto";
import type { KeypairType } from "../../../../core/stores/api/keypair-store.ts";

/**
 * Returns the fingerprint that Nova shows: MD5 over the key of an SSH line, SHA-1 over a certificate, in pairs of hexadecimal digits with
 * colons. Returns null when the text is not a public key of this type.
 */
export function fingerprintOf(type: KeypairType, publicKey: string): string | null {
  return type === "ssh" ? sshFingerprint(publicKey) : certificateFingerprint(publicKey);
}

/** The key types of OpenSSH, with the fields that follow the type's name in the key. `curve` is a text, and the others are bytes. */
const SSH_FIELDS: Readonly<Record<string, readonly ("number" | "curve" | "point" | "key32" | "text")[]>> = {
  "ssh-rsa": ["number", "number"],
  "ssh-dss": ["number", "number", "number", "number"],
  "ssh-ed25519": ["key32"],
  "ecdsa-sha2-nistp256": ["curve", "point"],
  "ecdsa-sha2-nistp384": ["curve", "point"],
  "ecdsa-sha2-nistp521": ["curve", "point"],
  "sk-ssh-ed25519@openssh.com": ["key32", "text"],
  "sk-ecdsa-sha2-nistp256@openssh.com": ["curve", "point", "text"],
};

/** Source: RFC 4253 section 6.6, RFC 5656 section 3.1, and PROTOCOL.u2f of OpenSSH. */
function sshFingerprint(publicKey: string): string | null {
  // No two neighbouring parts of the expression match the same character, so that a hostile text takes linear time.
  const [, type = "", encoded = ""] =
    /^(\S+)[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t][^\r\n]*)?$/.exec(publicKey.trim()) ?? [];
  const expected = Object.hasOwn(SSH_FIELDS, type) ? SSH_FIELDS[type] : undefined;
  if (expected === undefined) return null;
  const blob = Buffer.from(encoded, "base64");
  const fields = fieldsOf(blob);
  if (fields === null || fields.length !== expected.length + 1 || fields[0]?.toString("latin1") !== type) return null;
  const isWhole = expected.every((kind, index) => isField(kind, fields[index + 1] as Buffer, type));
  return isWhole ? pairs(createHash("md5").update(blob).digest("hex")) : null;
}

/** Splits a key into its fields, each of which follows its length. Returns null when the last one is cut off. */
function fieldsOf(blob: Buffer): readonly Buffer[] | null {
  const fields: Buffer[] = [];
  for (let at = 0; at < blob.length; ) {
    if (at + 4 > blob.length) return null;
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) return null;
    fields.push(blob.subarray(at + 4, end));
    at = end;
  }
  return fields;
}

function isField(kind: "number" | "curve" | "point" | "key32" | "text", field: Buffer, type: string): boolean {
  switch (kind) {
    case "number":
      return field.some((byte) => byte !== 0);
    case "curve":
      return type.includes(`-sha2-${field.toString("latin1")}`);
    case "point":
      return field.length > 1 && field[0] === 4;
    case "key32":
      return field.length === 32;
    case "text":
      return field.length > 0;
  }
}

function certificateFingerprint(publicKey: string): string | null {
  if (!publicKey.includes("-----BEGIN CERTIFICATE-----")) return null;
  try {
    return new X509Certificate(publicKey).fingerprint.toLowerCase();
  } catch {
    // The parser of OpenSSL throws for every text that it cannot read.
    return null;
  }
}

function pairs(hex: string): string {
  return hex.match(/../g)?.join(":") ?? "";
}
