import { randomBytes, webcrypto } from "node:crypto";
import { Constructed, Integer, ObjectIdentifier, Utf8String } from "asn1js";
import {
  AttributeTypeAndValue,
  AuthenticatedSafe,
  CertBag,
  Certificate,
  Extension,
  ExtKeyUsage,
  PFX,
  PrivateKeyInfo,
  SafeBag,
  SafeContents,
} from "pkijs";

/** A certificate of a user, who logs in to a Windows guest with it. */
export interface UserCertificate {
  /** PEM. */
  readonly certificate: string;
  /** Certificate and private key together, as PKCS #12 with an empty password, in base64. */
  readonly pkcs12: string;
}

const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  modulusLength: 2048,
  publicExponent: Uint8Array.of(1, 0, 1),
  hash: "SHA-256",
};
const DAYS = 3_650;
const DAY_MS = 86_400_000;
const OID = {
  commonName: "2.5.4.3",
  subjectAltName: "2.5.29.17",
  extKeyUsage: "2.5.29.37",
  clientAuth: "1.3.6.1.5.5.7.3.2",
  /** Microsoft's name of a user, which WinRM looks for. */
  userPrincipalName: "1.3.6.1.4.1.311.20.2.3",
  keyBag: "1.2.840.113549.1.12.10.1.1",
  certificateBag: "1.2.840.113549.1.12.10.1.3",
} as const;

/** Issues a certificate that signs itself, for ten years from `nowMs`, with the user's name and `<user>@localhost` in it. */
export async function issueUserCertificate(userId: string, nowMs: number): Promise<UserCertificate> {
  const { publicKey, privateKey } = await webcrypto.subtle.generateKey(RSA, true, ["sign", "verify"]);
  const certificate = new Certificate();
  certificate.version = 2;
  certificate.serialNumber = new Integer({ valueHex: serial() });
  for (const name of [certificate.issuer, certificate.subject])
    name.typesAndValues.push(
      new AttributeTypeAndValue({ type: OID.commonName, value: new Utf8String({ value: userId }) }),
    );
  certificate.notBefore.value = new Date(nowMs);
  certificate.notAfter.value = new Date(nowMs + DAYS * DAY_MS);
  await certificate.subjectPublicKeyInfo.importKey(publicKey);
  certificate.extensions = [
    extension(OID.extKeyUsage, new ExtKeyUsage({ keyPurposes: [OID.clientAuth] }).toSchema()),
    extension(OID.subjectAltName, principalName(`${userId}@localhost`)),
  ];
  await certificate.sign(privateKey, "SHA-256");
  const der = Buffer.from(certificate.toSchema(true).toBER());
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    pkcs12: await packed(certificate, privateKey),
  };
}

function extension(extnID: string, value: { toBER(): ArrayBuffer }): Extension {
  return new Extension({ extnID, critical: false, extnValue: value.toBER() });
}

/** Returns a list of alternative names with one `otherName` (source: RFC 5280, 4.2.1.6). */
function principalName(name: string): Constructed {
  const value = new Constructed({
    idBlock: { tagClass: 3, tagNumber: 0 },
    value: [new Utf8String({ value: name })],
  });
  const otherName = new Constructed({
    idBlock: { tagClass: 3, tagNumber: 0 },
    value: [new ObjectIdentifier({ value: OID.userPrincipalName }), value],
  });
  return new Constructed({ idBlock: { tagClass: 1, tagNumber: 16 }, value: [otherName] });
}

async function packed(certificate: Certificate, privateKey: webcrypto.CryptoKey): Promise<string> {
  const key = PrivateKeyInfo.fromBER(await webcrypto.subtle.exportKey("pkcs8", privateKey));
  const safeBags = [
    new SafeBag({ bagId: OID.keyBag, bagValue: key }),
    new SafeBag({ bagId: OID.certificateBag, bagValue: new CertBag({ parsedValue: certificate }) }),
  ];
  const authenticatedSafe = new AuthenticatedSafe({
    parsedValue: { safeContents: [{ privacyMode: 0, value: new SafeContents({ safeBags }) }] },
  });
  await authenticatedSafe.makeInternalValues({ safeContents: [{}] });
  const pfx = new PFX({ parsedValue: { integrityMode: 0, authenticatedSafe } });
  const password = new ArrayBuffer(0);
  await pfx.makeInternalValues({
    password,
    iterations: 2_048,
    pbkdf2HashAlgorithm: "SHA-256",
    hmacHashAlgorithm: "SHA-256",
  });
  return Buffer.from(pfx.toSchema().toBER()).toString("base64");
}

/** Returns a number that is positive and cannot be guessed. */
function serial(): ArrayBuffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40;
  return Uint8Array.from(bytes).buffer;
}
