import { createPublicKey, generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import { issueUserCertificate } from "../../../../adapters/x509/issue-user-certificate.ts";
import type { KeypairType } from "../../../../core/stores/api/keypair-store.ts";

export interface GeneratedKeypair {
  readonly publicKey: string;
  /** Shown once and stored nowhere. */
  readonly privateKey: string;
}

const generate = promisify(generateKeyPair);
const RSA_BITS = 2048;

/** Generates a key for a caller who has none: RSA for SSH, or a certificate of the user for WinRM. Cost: tens of milliseconds off the event loop. */
export async function generateKeypair(type: KeypairType, userId: string, nowMs: number): Promise<GeneratedKeypair> {
  if (type === "x509") {
    const { certificate, pkcs12 } = await issueUserCertificate(userId, nowMs);
    return { publicKey: certificate, privateKey: pkcs12 };
  }
  const { privateKey } = await generate("rsa", { modulusLength: RSA_BITS });
  const { n, e } = createPublicKey(privateKey).export({ format: "jwk" });
  const blob = Buffer.concat([field(Buffer.from("ssh-rsa")), field(positive(e)), field(positive(n))]);
  return {
    // Nova's comment, by which scripts recognise a generated key.
    publicKey: `ssh-rsa ${blob.toString("base64")} Generated-by-Nova`,
    privateKey: privateKey.export({ type: "pkcs1", format: "pem" }).toString(),
  };
}

function field(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** A leading zero keeps a number from being read as a negative one (source: RFC 4251, section 5). */
function positive(base64: string | undefined): Buffer {
  const bytes = Buffer.from(base64 ?? "", "base64url");
  return (bytes[0] ?? 0) < 0x80 ? bytes : Buffer.concat([Buffer.of(0), bytes]);
}
