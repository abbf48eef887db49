import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { Gauge, type Registry } from "prom-client";
import type { Logger } from "../../runtime/logger.ts";
import type { TlsFiles } from "./channel-options.ts";

const DAY_MS = 86_400_000;
/** As `berth certs --renew` renews by default. */
const SOON_MS = 30 * DAY_MS;

/** When a certificate (PEM) expires, in milliseconds since the epoch. */
export function expiryOf(certificate: Buffer): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

/** Says that this process's certificate has expired, as half a sentence, or nothing. Its peers refuse it without telling it why. */
export function expiredText(certificate: Buffer, nowMs: number): string {
  const expiryMs = expiryOf(certificate);
  if (nowMs < expiryMs) return "";
  return `; the certificate of this process expired on ${dayOf(expiryMs)}: renew it (berth certs --renew)`;
}

/**
 * Shows in the metrics when this process's certificate expires, and warns at the start if that is soon. `isReread` says that the process takes
 * the file's certificate whenever it connects, so that a renewed one counts without a restart.
 */
export function showExpiry(
  tls: TlsFiles | null,
  options: { readonly registry: Registry; readonly logger: Logger; readonly nowMs: number; readonly isReread: boolean },
): void {
  const read = () => (tls === null ? null : expiryOf(readFileSync(tls.cert)));
  const atStartMs = read();
  registerExpiry(options.registry, () => {
    const expiryMs = options.isReread ? read() : atStartMs;
    return tls === null || expiryMs === null ? null : { file: tls.cert, expiryMs };
  });
  if (tls === null || atStartMs === null || options.nowMs < atStartMs - SOON_MS) return;
  options.logger.warn(
    { file: tls.cert, expires: dayOf(atStartMs) },
    "the certificate of this process expires soon or has expired, and then no agent can connect to a conductor with it: renew it (berth certs --renew)",
  );
}

/** A certificate's file, and when it expires, in milliseconds since the epoch. */
interface Expiry {
  readonly file: string;
  readonly expiryMs: number;
}

/** Registers the metric. `read` returns null without a certificate. */
export function registerExpiry(registry: Registry, read: () => Expiry | null): void {
  new Gauge({
    name: "berth_tls_certificate_expires_at_seconds",
    help: "when the certificate expires with which this process identifies itself to conductors or agents, in seconds since the epoch",
    labelNames: ["file"],
    registers: [registry],
    collect() {
      this.reset();
      const expiry = readOrNull(read);
      if (expiry !== null) this.set({ file: expiry.file }, expiry.expiryMs / 1_000);
    },
  });
}

/** A file that cannot be read at the moment must not fail the scrape. */
function readOrNull(read: () => Expiry | null): Expiry | null {
  try {
    return read();
  } catch {
    return null;
  }
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
