import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { conductorNames } from "./cell-names.ts";

const VALID_DAYS = "825";

/**
 * A CA of the cell's own, and certificates of its conductors and its agent, with `openssl`; what is there is kept. The CA's key
 * stays beside them for names to come: take it away where that is too much trust in the machine.
 */
export function makeCellCertificates(dir: string, cell: string): void {
  const ca = join(dir, `${cell}-ca.pem`);
  const caKey = join(dir, `${cell}-ca-key.pem`);
  if (!existsSync(ca)) {
    const subject = [
      "-subj",
      `/CN=${cell} CA`,
      "-days",
      VALID_DAYS,
      "-addext",
      "keyUsage=critical,keyCertSign,cRLSign",
    ];
    openssl(["req", "-x509", ...newKey(caKey), "-out", ca, ...subject]);
    chmodSync(caKey, 0o600);
  }
  for (const name of [...conductorNames(cell), `${cell}-agent`]) {
    const certificate = join(dir, `${name}.pem`);
    if (!existsSync(certificate)) sign({ name, certificate, key: join(dir, `${name}-key.pem`), ca, caKey });
  }
}

function sign(of: { name: string; certificate: string; key: string; ca: string; caKey: string }): void {
  const scratch = mkdtempSync(join(tmpdir(), "berth-certs-"));
  try {
    const request = join(scratch, "request.pem");
    const extensions = join(scratch, "extensions");
    writeFileSync(extensions, `subjectAltName=DNS:${of.name}\nextendedKeyUsage=serverAuth,clientAuth\n`);
    openssl(["req", ...newKey(of.key), "-out", request, "-subj", `/CN=${of.name}`]);
    const signer = ["-CA", of.ca, "-CAkey", of.caKey, "-CAcreateserial", "-extfile", extensions];
    openssl(["x509", "-req", "-in", request, ...signer, "-out", of.certificate, "-days", VALID_DAYS]);
    // The containers' own user reads it; the directory keeps others out.
    chmodSync(of.key, 0o644);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function newKey(file: string): readonly string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", file];
}

function openssl(args: readonly string[]): void {
  execFileSync("openssl", [...args], { stdio: ["ignore", "ignore", "pipe"] });
}
