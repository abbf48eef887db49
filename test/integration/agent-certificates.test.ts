import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import { cellStreams } from "../../adapters/nats/streams.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { issueCertificate } from "../../adapters/x509/issue-certificate.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import type { Service } from "../../runtime/service.ts";
import { readSettings } from "../../runtime/settings.ts";
import { generateHosts } from "../../services/compute-agent/host-config.ts";
import { openAgent } from "../../services/compute-agent/open-agent.ts";
import { agentDeclaration } from "../../services/compute-agent/settings.ts";
import { openConductor } from "../../services/conductor/open-conductor.ts";
import { conductorDeclaration } from "../../services/conductor/settings.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";

const BERTH = join(import.meta.dirname, "../../bin/berth");
const CELL = "cell-1";
const HOST = "127.0.0.1";

let dir: string;
let nats: LocalNats;
let database: TestDatabase;
let pool: ReturnType<typeof createPool>;
let store: PostgresCellStore;
let opened: Service[];

const files = (name: string) => [
  `--tls-ca=${join(dir, `${CELL}-ca.pem`)}`,
  `--tls-cert=${join(dir, `${name}.pem`)}`,
  `--tls-key=${join(dir, `${name}-key.pem`)}`,
];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "berth-agent-certs-"));
  const agents = "agent-1=agent-1-*,agent-2=agent-2-*";
  execFileSync(BERTH, ["certs", "--out", dir, "--cells", CELL, "--names", HOST, "--agent-hosts", agents]);
  const pem = (name: string) => readFileSync(join(dir, name), "utf8");
  // A certificate as `berth certs` once made it for all agents of a cell.
  const old = await issueCertificate({
    subject: { names: [`${CELL}-agent`] },
    ca: { certificate: pem(`${CELL}-ca.pem`), key: pem(`${CELL}-ca-key.pem`) },
    lifetime: { nowMs: Date.now(), days: 2 },
  });
  writeFileSync(join(dir, "old.pem"), old.certificate);
  writeFileSync(join(dir, "old-key.pem"), old.key, { mode: 0o600 });
  nats = await startLocalNats({ cells: [CELL], writeConfig: natsConfig });
  const bus = createNatsBus({ url: nats.cellApiUrl(CELL), name: "test" });
  await bus.ensureStreams(cellStreams(CELL));
  await bus.close();
});
afterAll(async () => {
  await nats.stop();
  rmSync(dir, { recursive: true, force: true });
});
beforeEach(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "test" });
  store = new PostgresCellStore(pool);
  opened = [];
});
afterEach(async () => {
  for (const one of opened.reverse()) await one.close();
  await pool.end();
  await database.drop();
});

interface LogLine {
  readonly msg: string;
  readonly agentId?: string;
  readonly reason?: string;
}

function contextOf(log: LogLine[]) {
  const logger = pino({ level: "info" }, { write: (line) => void log.push(JSON.parse(line)) });
  return { logger, fail: (error: unknown) => expect.unreachable(String(error)) };
}

async function conductor(...more: readonly string[]) {
  const log: LogLine[] = [];
  const argv = [
    ...[`--cell=${CELL}`, `--cell-database-url=${database.url}`, `--nats-url=${nats.conductorUrl(CELL)}`],
    ...[`--listen=${HOST}:0`, ...files(`${CELL}-${HOST}`), ...more],
  ];
  const read = readSettings(conductorDeclaration, { argv, env: {} });
  if (read.kind !== "settings") throw new Error("no settings");
  const service = await openConductor({ settings: read.settings, ...contextOf(log) }, null);
  opened.push(service);
  await service.start();
  return { log, address: /agents at (\S+),/.exec(service.note)?.[1] ?? "" };
}

/** An agent `id` that uses the certificate of the given file, and carries hosts named after `hostsOf`. */
async function agent(address: string, of: { readonly id: string; readonly hostsOf: string; readonly file: string }) {
  const log: LogLine[] = [];
  const dataDir = mkdtempSync(join(dir, "journal-"));
  const hostsFile = join(dataDir, "hosts.json");
  writeFileSync(hostsFile, JSON.stringify({ hosts: generateHosts(of.hostsOf, 2) }));
  const argv = [
    ...[`--agent-id=${of.id}`, `--conductors=${address}`, `--hosts-file=${hostsFile}`, `--data-dir=${dataDir}`],
    ...files(of.file),
  ];
  const read = readSettings(agentDeclaration, { argv, env: {} });
  if (read.kind !== "settings") throw new Error("no settings");
  const service = await openAgent(
    { settings: read.settings, ...contextOf(log) },
    { otlpEndpoint: null, crash: () => expect.unreachable("the agent was told to crash") },
  );
  opened.push(service);
  await service.start();
  return { log };
}

const carried = async () => (await store.hosts()).map((host) => `${host.name} ${host.agentId} ${host.up}`);
const refusal = (log: readonly LogLine[]) =>
  eventually("a refusal", () => log.find((line) => /refused/.test(line.msg))?.reason);

test("each agent carries the hosts that its certificate names, and no others", async () => {
  const { address, log } = await conductor();
  await agent(address, { id: "agent-1", hostsOf: "agent-1", file: `${CELL}-agent-1` });
  const both = ["agent-1-1 agent-1 true", "agent-1-2 agent-1 true"];
  await eventually("its hosts to be up", async () => (await carried()).join() === both.join());

  const thief = await agent(address, { id: "agent-2", hostsOf: "agent-1", file: `${CELL}-agent-2` });
  const why = await refusal(log);
  expect(why).toMatch(/^the certificate of agent agent-2 allows the hosts agent-2-\*, and not agent-1-1, agent-1-2/);
  expect(await refusal(thief.log)).toBe(why);

  const impostor = await agent(address, { id: "agent-1", hostsOf: "agent-1", file: `${CELL}-agent-2` });
  expect(await refusal(impostor.log)).toMatch(/^the certificate is for agent agent-2, not for agent agent-1/);
  expect(await carried()).toEqual(both);

  await agent(address, { id: "agent-2", hostsOf: "agent-2", file: `${CELL}-agent-2` });
  await eventually("the other's hosts to be up", async () =>
    (await carried()).includes("agent-2-2 agent-2 true") ? true : null,
  );
  expect((await carried()).slice(0, 2)).toEqual(both);
});

test("a conductor's certificate is not accepted from an agent, nor an agent's from a conductor", async () => {
  const { address } = await conductor();
  const other = await agent(address, { id: "agent-1", hostsOf: "agent-1", file: `${CELL}-${HOST}` });
  expect(await refusal(other.log)).toMatch(/^the certificate names no agent/);
  const impostor = await conductor(...files(`${CELL}-agent-1`));
  const { log } = await agent(impostor.address, { id: "agent-1", hostsOf: "agent-1", file: `${CELL}-agent-1` });
  expect(await refusal(log)).toMatch(/certificate/i);
  expect([await carried(), impostor.log.filter((line) => line.msg === "an agent connected")]).toEqual([[], []]);
});

test("a certificate for all agents of a cell is accepted only where the conductor's settings allow it, and then with a warning", async () => {
  const strict = await conductor();
  const { log } = await agent(strict.address, { id: "agent-1", hostsOf: "agent-1", file: "old" });
  expect(await refusal(log)).toMatch(/names no agent: issue one .* with `berth certs --agent-hosts`/);
  const lenient = await conductor("--allow-cell-wide-certificates");
  await agent(lenient.address, { id: "agent-1", hostsOf: "agent-1", file: "old" });
  await eventually("its hosts to be up", async () => (await carried()).length === 2);
  expect(lenient.log.map((line) => line.msg)).toContainEqual(
    expect.stringMatching(/^an agent was accepted whose certif/),
  );
});
