import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { cellNames } from "./cell-names.ts";
import { certificateFiles, certificatePlan } from "./certificate-plan.ts";
import { certificatesText, isUsable } from "./certificates-text.ts";
import { type CertificateReport, MissingKeyError, makeCertificates } from "./make-certificates.ts";
import { secretFiles } from "./secret-files.ts";

const USAGE = `usage: node deploy/make-secrets.ts [N] [--out DIR]

Writes the passwords, certificates and servers' configurations of N cells (3) for deploy/compose.yaml to DIR (deploy/secrets).
Existing files are kept: run it again with a larger N to add cells. Prints the certificates with the days on which they expire.`;

const PASSWORDS_FILE = "passwords.json";
const VALID_DAYS = 825;
/** The id of the user that all containers run as, created by deploy/Dockerfile. */
const CONTAINER_UID = 10_001;

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: { out: { type: "string", default: join(import.meta.dirname, "secrets") } },
  });
  const count = Number(positionals[0] ?? 3);
  if (!Number.isInteger(count) || count < 1 || positionals.length > 1) {
    process.stderr.write(`${USAGE}\n`);
    return 2;
  }
  const dir = resolve(values.out);
  // The directory keeps others out, and the containers' own user can read the files.
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, 0o700);
  const cells = cellNames(count);
  const passwords = keptPasswords(join(dir, PASSWORDS_FILE));
  for (const [name, text] of Object.entries(secretFiles(cells, passwords.of))) write(dir, name, text, 0o644);
  write(dir, PASSWORDS_FILE, `${JSON.stringify(Object.fromEntries(passwords.all), null, 2)}\n`, 0o600);
  const reports = await certificatesOf(dir, cells);
  process.stdout.write(certificatesText(reports));
  const bad = reports.filter(({ state }) => !isUsable(state)).length;
  if (bad === 0) return 0;
  process.stderr.write(
    `make-secrets: ${bad === 1 ? "a certificate expires" : `${bad} certificates expire`} soon: run it with at least as many cells as before, renew agents' with berth certs --renew --agent-hosts …, and authorities with berth certs --force\n`,
  );
  return 1;
}

/**
 * The containers' own user must be able to read members' keys, and only root can give them to that user. Otherwise only the directory keeps
 * others out.
 */
async function certificatesOf(dir: string, cells: readonly string[]): Promise<readonly CertificateReport[]> {
  const plan = certificatePlan(cells);
  const reports = await makeCertificates(dir, plan, {
    nowMs: Date.now(),
    days: VALID_DAYS,
    renewWithinDays: 30,
    replace: "renew",
  });
  for (const key of plan.flatMap(({ members }) => members.map(({ name }) => join(dir, certificateFiles(name).key)))) {
    if (process.getuid?.() === 0) chownSync(key, CONTAINER_UID, CONTAINER_UID);
    else chmodSync(key, 0o644);
  }
  return reports;
}

/** Passwords by purpose: those in the file, and new ones for the rest. */
function keptPasswords(file: string) {
  const kept = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Record<string, string>) : {};
  const all = new Map(Object.entries(kept));
  const of = (what: string): string => {
    const password = all.get(what) ?? randomBytes(18).toString("base64url");
    all.set(what, password);
    return password;
  };
  return { all, of };
}

function write(dir: string, name: string, text: string, mode: number): void {
  writeFileSync(join(dir, name), text, { mode });
  chmodSync(join(dir, name), mode);
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof MissingKeyError)) throw error;
  process.stderr.write(`make-secrets: ${error.message} (of berth certs)\n`);
  process.exit(1);
}
