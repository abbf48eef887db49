import { randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { BitString, Integer, OctetString, Utf8String } from "asn1js";
import {
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  Extension,
  ExtKeyUsage,
  GeneralName,
  GeneralNames,
} from "pkijs";

/** A certificate and its key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface Lifetime {
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  readonly days: number;
}

interface Keys {
  readonly publicKey: webcrypto.CryptoKey;
  readonly privateKey: webcrypto.CryptoKey;
}

const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const HASH = "SHA-256";
const DAY_MS = 86_400_000;
/** Clocks of other machines may be behind. */
const BEFORE_MS = 300_000;
const OID = {
  commonName: "2.5.4.3",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
} as const;
/** Bits of keyUsage, the first one highest: digitalSignature; keyCertSign and cRLSign. */
const MAY_AUTHENTICATE = { byte: 0b1000_0000, unusedBits: 7 };
const MAY_SIGN_CERTIFICATES = { byte: 0b0000_0110, unusedBits: 1 };

/** A certificate authority whose certificate is signed by itself. It may sign certificates of processes, but none of other authorities. */
export async function issueCa(name: string, lifetime: Lifetime): Promise<KeyPair> {
  const keys = await newKeys();
  const certificate = await unsigned({ subject: name, issuer: name, keys, lifetime, usage: MAY_SIGN_CERTIFICATES });
  add(certificate, OID.basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }).toSchema(), true);
  await certificate.sign(keys.privateKey, HASH);
  return pairOf(certificate, keys);
}

/** The holder of a certificate. */
export type CertificateSubject =
  /** A process that serves and calls, known under DNS names and IP addresses; the first is its common name. */
  | { readonly names: readonly [string, ...string[]] }
  /** A process that only calls, known by URIs. */
  | { readonly commonName: string; readonly uris: readonly string[] };

/** A certificate that identifies a process. Throws when `ca` is not the certificate of an authority. */
export async function issueCertificate(options: {
  readonly subject: CertificateSubject;
  readonly ca: KeyPair;
  readonly lifetime: Lifetime;
}): Promise<KeyPair> {
  const { subject, ca, lifetime } = options;
  const names = "uris" in subject ? subject.uris.map(uriName) : subject.names.map(generalName);
  const called = "uris" in subject ? subject.commonName : subject.names[0];
  const keyPurposes = "uris" in subject ? [OID.clientAuth] : [OID.serverAuth, OID.clientAuth];
  const authority = Certificate.fromBER(bytesOf(ca.certificate, "CERTIFICATE"));
  const signer = await privateKeyOf(ca.key);
  const keys = await newKeys();
  const issuer = `${authority.subject.typesAndValues[0]?.value.valueBlock.value ?? ""}`;
  const certificate = await unsigned({ subject: called, issuer, keys, lifetime, usage: MAY_AUTHENTICATE });
  const purposes = new ExtKeyUsage({ keyPurposes });
  add(certificate, OID.basicConstraints, new BasicConstraints({ cA: false }).toSchema(), true);
  add(certificate, OID.extKeyUsage, purposes.toSchema(), false);
  add(certificate, OID.subjectAltName, new GeneralNames({ names }).toSchema(), false);
  const keyIdentifier = new OctetString({ valueHex: await identifierOf(authority) });
  add(certificate, OID.authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier }).toSchema(), false);
  await certificate.sign(signer, HASH);
  return pairOf(certificate, keys);
}

async function unsigned(of: {
  readonly subject: string;
  readonly issuer: string;
  readonly keys: Keys;
  readonly lifetime: Lifetime;
  readonly usage: { readonly byte: number; readonly unusedBits: number };
}): Promise<Certificate> {
  const certificate = new Certificate();
  certificate.version = 2;
  certificate.serialNumber = new Integer({ valueHex: serialNumber() });
  certificate.issuer.typesAndValues.push(commonName(of.issuer));
  certificate.subject.typesAndValues.push(commonName(of.subject));
  certificate.notBefore.value = new Date(of.lifetime.nowMs - BEFORE_MS);
  certificate.notAfter.value = new Date(of.lifetime.nowMs + of.lifetime.days * DAY_MS);
  await certificate.subjectPublicKeyInfo.importKey(of.keys.publicKey);
  const { byte, unusedBits } = of.usage;
  add(certificate, OID.keyUsage, new BitString({ valueHex: Uint8Array.of(byte).buffer, unusedBits }), true);
  add(certificate, OID.subjectKeyIdentifier, new OctetString({ valueHex: await identifierOf(certificate) }), false);
  return certificate;
}

function add(certificate: Certificate, extnID: string, value: { toBER(): ArrayBuffer }, critical: boolean): void {
  certificate.extensions ??= [];
  certificate.extensions.push(new Extension({ extnID, critical, extnValue: value.toBER() }));
}

function commonName(value: string): AttributeTypeAndValue {
  return new AttributeTypeAndValue({ type: OID.commonName, value: new Utf8String({ value }) });
}

/** Kinds of names: 2 is DNS, 6 a URI, 7 an address (source: RFC 5280, 4.2.1.6). */
function generalName(name: string): GeneralName {
  if (isIP(name) === 0) return new GeneralName({ type: 2, value: name });
  return new GeneralName({ type: 7, value: new OctetString({ valueHex: addressBytes(name) }) });
}

function uriName(uri: string): GeneralName {
  return new GeneralName({ type: 6, value: uri });
}

function addressBytes(address: string): ArrayBuffer {
  if (isIP(address) === 4) return Uint8Array.from(address.split("."), Number).buffer;
  // The URL parser spells every address in one way: eight groups, of which `::` may stand for some.
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = "", tail] = spelled.split("::");
  const groupsOf = (text: string) => (text === "" ? [] : text.split(":"));
  const [before, after] = [groupsOf(head), groupsOf(tail ?? "")];
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - before.length - after.length }, () => "0");
  const groups = [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16));
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 255])).buffer;
}

/** The number is positive and cannot be guessed. */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40;
  return Uint8Array.from(bytes).buffer;
}

function identifierOf({ subjectPublicKeyInfo }: Certificate): Promise<ArrayBuffer> {
  return webcrypto.subtle.digest(
    "SHA-1",
    Uint8Array.from(subjectPublicKeyInfo.subjectPublicKey.valueBlock.valueHexView),
  );
}

function newKeys(): Promise<Keys> {
  return webcrypto.subtle.generateKey(CURVE, true, ["sign", "verify"]) as Promise<Keys>;
}

function privateKeyOf(pem: string): Promise<CryptoKey> {
  return webcrypto.subtle.importKey("pkcs8", bytesOf(pem, "PRIVATE KEY"), CURVE, false, ["sign"]);
}

async function pairOf(certificate: Certificate, keys: Keys): Promise<KeyPair> {
  const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    certificate: pemOf(certificate.toSchema(true).toBER(), "CERTIFICATE"),
    key: pemOf(key, "PRIVATE KEY"),
  };
}

function pemOf(bytes: ArrayBuffer, label: string): string {
  const lines =
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

function bytesOf(pem: string, label: string): ArrayBuffer {
  const [, body] = new RegExp(`-----BEGIN ${label}-----([^-]+)-----END ${label}-----`).exec(pem) ?? [];
  if (body === undefined) throw new Error(`no ${label} in this file`);
  return Uint8Array.from(Buffer.from(body, "base64")).buffer;
}
