import type { CertificateReport } from "./make-certificates.ts";

const WORDS: Readonly<Record<CertificateReport["state"], string>> = {
  made: "made",
  renewed: "renewed",
  kept: "kept",
  expiring: "kept, but expires soon",
  foreign: "kept, but issued by another authority",
  misnamed: "kept, but names another agent or other hosts",
  unnamed: "kept, since this call does not name it",
  forgotten: "kept, but expires soon: this call does not name it (--names, --agent-hosts)",
};

const USABLE: readonly CertificateReport["state"][] = ["made", "renewed", "kept", "unnamed"];

/** Whether a certificate in this state works, and will for a while. */
export const isUsable = (state: CertificateReport["state"]): boolean => USABLE.includes(state);

/** A line for each certificate: its file, the day on which it expires, and what was done with it. */
export function certificatesText(reports: readonly CertificateReport[]): string {
  return reports
    .map(({ file, state, validTo }) => `${file}\t${validTo.toISOString().slice(0, 10)}\t${WORDS[state]}\n`)
    .join("");
}
