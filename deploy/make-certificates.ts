import { X509Certificate } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { permitOfCertificate } from "../adapters/grpc/certificate-permit.ts";
import {
  type CertificateSubject,
  issueCa,
  issueCertificate,
  type KeyPair,
} from "../adapters/x509/issue-certificate.ts";
import { type AgentPermit, urisOfPermit } from "../core/agent/agent-permit.ts";
import { type AuthorityPlan, authorityFiles, certificateFiles, type MemberPlan } from "./certificate-plan.ts";

export interface CertificateOptions {
  readonly nowMs: number;
  /** The validity of certificates. An authority's own certificate lasts ten years. */
  readonly days: number;
  /** A certificate that ends within this many days counts as expiring. */
  readonly renewWithinDays: number;
  /**
   * `missing` makes only missing files. `renew` also replaces certificates that are expiring, misnamed, or issued by another authority than
   * the present one. `force` makes everything again, even the authorities, so every client that trusts the old ones must get the new ones.
   */
  readonly replace: "missing" | "renew" | "force";
}

/**
 * `expiring`, `foreign` and `misnamed` certificates are kept although they will soon stop working or do not work at all: the authority is
 * another one, or the names are not the agent and the hosts of the plan. `unnamed` certificates were made by these authorities and are in no plan of this call, so they
 * are kept whatever the call replaces; `forgotten` ones of these expire soon.
 */
export type CertificateState =
  | "made"
  | "renewed"
  | "kept"
  | "expiring"
  | "foreign"
  | "misnamed"
  | "unnamed"
  | "forgotten";

export interface CertificateReport {
  readonly file: string;
  readonly state: CertificateState;
  readonly validTo: Date;
}

const CA_DAYS = 3_650;
const DAY_MS = 86_400_000;

/** The key of an authority is missing, so it cannot issue anything. */
export class MissingKeyError extends Error {
  constructor(file: string) {
    super(
      `${file} is missing, and no certificate can be issued without it: put it back, or replace everything with --force`,
    );
    this.name = "MissingKeyError";
  }
}

/** Makes the files of the plan in `dir`. Only their owner can read keys. Throws `MissingKeyError`. */
export async function makeCertificates(
  dir: string,
  plan: readonly AuthorityPlan[],
  options: CertificateOptions,
): Promise<readonly CertificateReport[]> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const reports: CertificateReport[] = [];
  for (const authority of plan) reports.push(...(await makeAuthority(dir, authority, options)));
  return [...reports, ...findUnnamed(dir, plan, { ...options, named: new Set(reports.map(({ file }) => file)) })];
}

/** The other certificates of these authorities in the directory, such as those of agents that an earlier call named. */
function findUnnamed(
  dir: string,
  plan: readonly AuthorityPlan[],
  options: CertificateOptions & { readonly named: ReadonlySet<string> },
): readonly CertificateReport[] {
  const authorities = plan.flatMap(({ name }) => readCertificate(join(dir, authorityFiles(name).certificate)) ?? []);
  return readdirSync(dir)
    .filter((file) => file.endsWith(".pem") && !file.endsWith("-key.pem") && !options.named.has(file))
    .toSorted()
    .flatMap((file) => {
      const found = certificateIn(join(dir, file));
      if (found === null || !authorities.some((own) => found.verify(own.publicKey))) return [];
      return { file, state: isExpiring(found, options) ? "forgotten" : "unnamed", validTo: found.validToDate };
    });
}

/** Null for a file that is no certificate, which may be anybody's. */
function certificateIn(path: string): X509Certificate | null {
  try {
    return readCertificate(path);
  } catch {
    return null;
  }
}

async function makeAuthority(
  dir: string,
  { name, members }: AuthorityPlan,
  options: CertificateOptions,
): Promise<readonly CertificateReport[]> {
  const files = authorityFiles(name);
  const { nowMs } = options;
  const found = options.replace === "force" ? null : readCertificate(join(dir, files.certificate));
  if (found === null) write(dir, files, await issueCa(`${name} CA`, { nowMs, days: Math.max(CA_DAYS, options.days) }));
  const own = found ?? (readCertificate(join(dir, files.certificate)) as X509Certificate);
  const state = found === null ? "made" : isExpiring(own, options) ? "expiring" : "kept";
  const reports: CertificateReport[] = [{ file: files.certificate, state, validTo: own.validToDate }];
  for (const member of members) reports.push(await makeMember(dir, { member, authority: files, own }, options));
  return reports;
}

async function makeMember(
  dir: string,
  of: {
    readonly member: MemberPlan;
    readonly authority: { readonly certificate: string; readonly key: string };
    readonly own: X509Certificate;
  },
  options: CertificateOptions,
): Promise<CertificateReport> {
  const files = certificateFiles(of.member.name);
  const path = join(dir, files.certificate);
  const found = options.replace === "force" ? null : readCertificate(path);
  const state = found === null ? "made" : stateOf(found, of, options);
  if (state === "made" || state === "renewed") {
    const ca = readPair(dir, of.authority);
    const daysLeft = Math.floor((of.own.validToDate.getTime() - options.nowMs) / DAY_MS);
    const lifetime = { nowMs: options.nowMs, days: Math.min(options.days, daysLeft) };
    write(dir, files, await issueCertificate({ subject: subjectOf(of.member), ca, lifetime }));
  }
  return { file: files.certificate, state, validTo: (readCertificate(path) as X509Certificate).validToDate };
}

function subjectOf(member: MemberPlan): CertificateSubject {
  if (!("permit" in member)) return { names: [member.host] };
  return { commonName: member.permit.agentIds[0] ?? member.name, uris: urisOfPermit(member.permit) };
}

function stateOf(
  found: X509Certificate,
  of: { readonly member: MemberPlan; readonly own: X509Certificate },
  options: CertificateOptions,
): CertificateState {
  const bad = faultOf(found, of, options);
  if (bad === null) return "kept";
  return options.replace === "renew" ? "renewed" : bad;
}

function faultOf(
  found: X509Certificate,
  { member, own }: { readonly member: MemberPlan; readonly own: X509Certificate },
  options: CertificateOptions,
): "foreign" | "misnamed" | "expiring" | null {
  if (!found.verify(own.publicKey)) return "foreign";
  if ("permit" in member && !isFor(found, member.permit)) return "misnamed";
  return isExpiring(found, options) ? "expiring" : null;
}

function isFor(certificate: X509Certificate, permit: AgentPermit): boolean {
  const found = urisOfPermit(permitOfCertificate(certificate.raw));
  return found.toSorted().join() === urisOfPermit(permit).toSorted().join();
}

function isExpiring(certificate: X509Certificate, { nowMs, renewWithinDays }: CertificateOptions): boolean {
  return certificate.validToDate.getTime() - nowMs < renewWithinDays * DAY_MS;
}

function readCertificate(path: string): X509Certificate | null {
  return existsSync(path) ? new X509Certificate(readFileSync(path)) : null;
}

function readPair(dir: string, files: { readonly certificate: string; readonly key: string }): KeyPair {
  if (!existsSync(join(dir, files.key))) throw new MissingKeyError(files.key);
  return {
    certificate: readFileSync(join(dir, files.certificate), "utf8"),
    key: readFileSync(join(dir, files.key), "utf8"),
  };
}

/** Each file appears complete, and the key first, so that a certificate never exists without its key. */
function write(dir: string, files: { readonly certificate: string; readonly key: string }, pair: KeyPair): void {
  replaceFile(join(dir, files.key), pair.key, 0o600);
  replaceFile(join(dir, files.certificate), pair.certificate, 0o644);
}

function replaceFile(path: string, text: string, mode: number): void {
  const part = `${path}.part`;
  writeFileSync(part, text, { mode });
  chmodSync(part, mode);
  renameSync(part, path);
}
