import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { permitOfCertificate } from "../adapters/grpc/certificate-permit.ts";
import { type AuthorityPlan, certificatePlan, SameFileError } from "./certificate-plan.ts";
import { type CertificateOptions, makeCertificates } from "./make-certificates.ts";

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 0, 1);
const itself = (host: string) => ({ name: host, host });
const agent = (cell: string, hosts = [`${cell}-*`]) => ({ name: `${cell}-agent`, permit: { agentIds: [cell], hosts } });
const PLAN = [
  { name: "east", members: [agent("east"), { name: "east-127.0.0.1", host: "127.0.0.1" }] },
  { name: "west", members: [agent("west")] },
];
const OPTIONS: CertificateOptions = { nowMs: NOW_MS, days: 90, renewWithinDays: 30, replace: "missing" };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-certs-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const read = (file: string) => new X509Certificate(readFileSync(join(dir, file)));
const make = async (options: Partial<CertificateOptions> = {}, plan: readonly AuthorityPlan[] = PLAN) =>
  (await makeCertificates(dir, plan, { ...OPTIONS, ...options })).map(({ file, state }) => `${file} ${state}`);

test("each authority issues its own members' certificates, by name or address, and no others", async () => {
  expect(await make()).toEqual([
    "east-ca.pem made",
    "east-agent.pem made",
    "east-127.0.0.1.pem made",
    "west-ca.pem made",
    "west-agent.pem made",
  ]);
  const [east, west] = [read("east-ca.pem"), read("west-ca.pem")];
  expect([east.ca, read("east-agent.pem").ca]).toEqual([true, false]);
  expect(read("east-agent.pem").checkIssued(east) && read("east-agent.pem").verify(east.publicKey)).toBe(true);
  expect(read("west-agent.pem").verify(east.publicKey)).toBe(false);
  expect(west.fingerprint256).not.toBe(east.fingerprint256);
  expect(permitOfCertificate(read("east-agent.pem").raw)).toEqual({ agentIds: ["east"], hosts: ["east-*"] });
  expect(permitOfCertificate(read("east-127.0.0.1.pem").raw)).toEqual({ agentIds: [], hosts: [] });
  expect(read("east-127.0.0.1.pem").checkIP("127.0.0.1")).toBe("127.0.0.1");
  expect(read("east-agent.pem").validToDate.getTime()).toBe(NOW_MS + 90 * DAY_MS);
});

test("only their owner can read keys", async () => {
  await make();
  const keys = readdirSync(dir).filter((file) => file.endsWith("-key.pem"));
  expect(keys).toHaveLength(5);
  expect(keys.filter((file) => (statSync(join(dir, file)).mode & 0o777) !== 0o600)).toEqual([]);
});

test("existing files are kept, and only force replaces them", async () => {
  await make();
  const before = readFileSync(join(dir, "east-agent-key.pem"), "utf8");
  expect((await make()).every((line) => line.endsWith(" kept"))).toBe(true);
  expect((await make({ replace: "renew" })).every((line) => line.endsWith(" kept"))).toBe(true);
  expect(readFileSync(join(dir, "east-agent-key.pem"), "utf8")).toBe(before);
  expect((await make({ replace: "force" })).every((line) => line.endsWith(" made"))).toBe(true);
  expect(readFileSync(join(dir, "east-agent-key.pem"), "utf8")).not.toBe(before);
});

test("a later member gets a certificate of the existing authority", async () => {
  await make();
  await make({}, [{ name: "east", members: [itself("east-late")] }]);
  expect(read("east-late.pem").verify(read("east-ca.pem").publicKey)).toBe(true);
});

test("a certificate that expires soon is reported, and renewed by the same authority on request", async () => {
  await make();
  const [authority, later] = [read("west-ca.pem").fingerprint256, NOW_MS + 61 * DAY_MS];
  expect(await make({ nowMs: later })).toContain("west-agent.pem expiring");
  expect(await make({ nowMs: later, replace: "renew" })).toContain("west-agent.pem renewed");
  expect(read("west-agent.pem").validToDate.getTime()).toBe(later + 90 * DAY_MS);
  expect(read("west-ca.pem").fingerprint256).toBe(authority);
  expect(read("west-agent.pem").verify(read("west-ca.pem").publicKey)).toBe(true);
});

test("no certificate outlives its authority", async () => {
  await make();
  const atEnd = NOW_MS + 3_640 * DAY_MS;
  await make({ nowMs: atEnd, replace: "renew" });
  expect(read("east-agent.pem").validToDate.getTime()).toBeLessThanOrEqual(read("east-ca.pem").validToDate.getTime());
});

test("a certificate of another authority is reported, and replaced on request", async () => {
  await make();
  rmSync(join(dir, "west-ca.pem"));
  expect(await make()).toContain("west-agent.pem foreign");
  expect(await make({ replace: "renew" })).toContain("west-agent.pem renewed");
  expect(read("west-agent.pem").verify(read("west-ca.pem").publicKey)).toBe(true);
});

test("a certificate that names another agent or other hosts is reported, and replaced on request", async () => {
  await make({}, [{ name: "east", members: [itself("east-agent")] }]);
  for (const hosts of [["east-*"], ["east-*", "spare"]]) {
    const plan = [{ name: "east", members: [agent("east", hosts)] }];
    expect(await make({}, plan)).toContain("east-agent.pem misnamed");
    expect(await make({ replace: "renew" }, plan)).toContain("east-agent.pem renewed");
    expect(await make({}, plan)).toContain("east-agent.pem kept");
    expect(permitOfCertificate(read("east-agent.pem").raw)).toEqual({ agentIds: ["east"], hosts });
  }
});

test("an agent's certificate cannot serve as a server's", async () => {
  await make();
  const purposes = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" };
  expect(read("east-agent.pem").keyUsage).toEqual([purposes.client]);
  expect(read("east-127.0.0.1.pem").keyUsage).toEqual([purposes.server, purposes.client]);
});

test("without an authority's key nothing is issued, and members that need nothing are unaffected", async () => {
  await make();
  rmSync(join(dir, "east-ca-key.pem"));
  await make();
  rmSync(join(dir, "east-agent.pem"));
  await expect(make()).rejects.toThrow(/east-ca-key\.pem is missing/);
});

test("a host of several cells gets a certificate from each", async () => {
  const plan = certificatePlan(["east", "west"], ["edge.example"]);
  expect(await make({}, plan)).toEqual(
    expect.arrayContaining(["east-edge.example.pem made", "west-edge.example.pem made"]),
  );
  for (const cell of ["east", "west"]) {
    const certificate = read(`${cell}-edge.example.pem`);
    expect(certificate.verify(read(`${cell}-ca.pem`).publicKey)).toBe(true);
    expect(certificate.checkHost("edge.example")).toBe("edge.example");
  }
});

test("agents get a certificate of their own cell, for themselves and their hosts", async () => {
  const plan = certificatePlan(["east", "west"], [], [{ cell: "west", id: "rack-1", hosts: ["rack-1-*", "spare"] }]);
  const made = await make({}, plan);
  expect(made).toEqual(expect.arrayContaining(["west-rack-1.pem made", "east-agent.pem made"]));
  expect(made).not.toContain("east-rack-1.pem made");
  expect(permitOfCertificate(read("west-rack-1.pem").raw)).toEqual({
    agentIds: ["rack-1"],
    hosts: ["rack-1-*", "spare"],
  });
  expect(permitOfCertificate(read("east-agent.pem").raw)).toEqual({ agentIds: ["east-host"], hosts: ["east-host-*"] });
});

test.each([
  ["a cell that is called as the API tier", ["above"], []],
  ["a cell that is named twice", ["east", "east"], []],
  ["a host that is called as an authority", ["east"], ["ca"]],
  ["a host that is called as the cell's own", ["east"], ["agent"]],
])("two certificates never share one file: %s is refused", (_what, cells, hosts) => {
  expect(() => certificatePlan(cells, hosts)).toThrow(SameFileError);
});

test("certificates that the call does not name are kept and listed, and those that expire soon are marked; other files are not", async () => {
  const more = { name: "east-more", permit: { agentIds: ["more"], hosts: ["more-*"] } };
  await make({}, [{ ...PLAN[0]!, members: [...PLAN[0]!.members, more] }, PLAN[1]!]);
  const before = readFileSync(join(dir, "east-more.pem"), "utf8");
  for (const file of ["note.pem", "other.txt"]) writeFileSync(join(dir, file), "no certificate");
  expect((await make()).at(-1)).toBe("east-more.pem unnamed");
  const late = { nowMs: NOW_MS + 70 * DAY_MS, replace: "renew" as const };
  expect(await make(late)).toEqual([
    "east-ca.pem kept",
    "east-agent.pem renewed",
    "east-127.0.0.1.pem renewed",
    "west-ca.pem kept",
    "west-agent.pem renewed",
    "east-more.pem forgotten",
  ]);
  expect(readFileSync(join(dir, "east-more.pem"), "utf8")).toBe(before);
});
