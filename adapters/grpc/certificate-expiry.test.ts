import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { issueCa, issueCertificate, type KeyPair } from "../x509/issue-certificate.ts";
import { showExpiry } from "./certificate-expiry.ts";
import type { TlsFiles } from "./channel-options.ts";
import { createGrpcDialer } from "./grpc-dialer.ts";
import { createGrpcAgentListener } from "./grpc-listener.ts";

const DAY_MS = 86_400_000;
let ca: KeyPair;
let server: KeyPair;
let [valid, expired]: KeyPair[] = [];
beforeAll(async () => {
  const nowMs = Date.now();
  ca = await issueCa("cell-1", { nowMs: nowMs - 10 * DAY_MS, days: 100 });
  const issue = (name: string, lifetime: { nowMs: number; days: number }) =>
    issueCertificate({ subject: { names: [name] }, ca, lifetime });
  server = await issue("127.0.0.1", { nowMs, days: 2 });
  valid = await issue("agent", { nowMs, days: 60 });
  expired = await issue("agent", { nowMs: nowMs - 4 * DAY_MS, days: 2 });
});

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-expiry-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
});
function write(name: string, pair: KeyPair | undefined): TlsFiles {
  const file = (part: string, text = "") => {
    const path = join(dir, `${name}-${part}.pem`);
    writeFileSync(path, text);
    return path;
  };
  return { ca: file("ca", ca.certificate), cert: file("cert", pair?.certificate), key: file("key", pair?.key) };
}

test("an agent says that its own certificate has expired, always in the same words, and takes a renewed one without a restart", async () => {
  const listener = await createGrpcAgentListener({ listen: "127.0.0.1:0", tls: write("server", server) });
  onTestFinished(() => listener.close());
  const accepted = new Promise<string>((resolve) => listener.onAgent(() => resolve("accepted")));
  const dialer = createGrpcDialer({ tls: write("agent", expired) });
  onTestFinished(() => dialer.close());
  const dial = () => new Promise<string>((resolve) => dialer.dial(listener.address).onClose(resolve));
  const reason = await dial();
  expect(reason).toMatch(
    /^No connection established.*; the certificate of this process expired on \d{4}-\d\d-\d\d: renew it/,
  );
  expect(reason).not.toMatch(/\d\d:\d\d/);
  // A file that is being replaced.
  writeFileSync(join(dir, "agent-cert.pem"), "");
  expect(await dial()).toContain("the certificate of this process expired on");
  write("agent", valid);
  expect(await Promise.race([dial(), accepted])).toBe("accepted");
});

test.each([
  ["an agent, which reads its file at each connection,", true, 60],
  ["a conductor, which reads it once,", false, -2],
])(
  "the metric of %s shows when the certificate in use expires, and an early warning is logged",
  async (_, isReread, days) => {
    const registry = new Registry();
    const lines: string[] = [];
    const logger = pino({}, { write: (line) => void lines.push(line) });
    showExpiry(write("own", expired), { registry, logger, nowMs: Date.now(), isReread });
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([expect.stringContaining("expires soon or has expired")]);
    write("own", valid);
    const shown =
      (await registry.getSingleMetric("berth_tls_certificate_expires_at_seconds")?.get())?.values[0]?.value ?? 0;
    expect(Math.round((shown * 1_000 - Date.now()) / DAY_MS)).toBe(days);
  },
);

test("a process without certificates has no such series and no warning", async () => {
  const registry = new Registry();
  const lines: string[] = [];
  const logger = pino({}, { write: (line) => void lines.push(line) });
  showExpiry(null, { registry, logger, nowMs: Date.now(), isReread: true });
  expect((await registry.getSingleMetric("berth_tls_certificate_expires_at_seconds")?.get())?.values).toEqual([]);
  expect(lines).toEqual([]);
});
