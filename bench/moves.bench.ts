import { setTimeout as delay } from "node:timers/promises";
import { withClient } from "../adapters/postgres/client/databases.ts";
import { auditTwice } from "../audit/audit-twice.ts";
import { conductorSettingNames } from "../audit/conductor-setting-names.ts";
import { Drain } from "../cli/operators/drain.ts";
import { callCompute, callOperatorsApi } from "../cli/operators/operators-client.ts";
import { type EmbeddedCloud, startCloud } from "../cloud/embedded-cloud.ts";
import { createLogger } from "../runtime/logger.ts";
import type { HostConfig } from "../services/compute-agent/host-config.ts";

const SERVERS = 1_000;
const DRAINED = 10;
/** Enough hosts for all servers of the drained hosts. */
const OTHERS = 20;
const BOOTS_PER_CALL = 100;
const LIMIT_MS = 180_000;
const POLL_MS = 50;

/** Measures moving 1,000 servers off 10 hosts by cold migration, each confirmed, with `berth host drain` on ten hosts at a time. */
export async function run(): Promise<void> {
  const hosts = Array.from({ length: DRAINED + OTHERS }, (_, index) => hostOf(index));
  const cloud = await startCloud({
    ...{ databaseUrl: null, dataDir: null, cells: [{ name: "cell-1", hosts }], schedulers: 1, conductors: 1 },
    listen: { host: "127.0.0.1", port: 0 },
    logger: createLogger({ name: "bench", level: "silent" }),
    fail: (error) => {
      throw error;
    },
  });
  try {
    await fill(cloud, hosts);
    await report(cloud, hosts);
  } finally {
    await cloud.close();
  }
}

function hostOf(index: number): HostConfig {
  const inventories = { VCPU: { total: SERVERS }, MEMORY_MB: { total: 1_000_000 }, DISK_GB: { total: 1_000_000 } };
  return { name: `host-${index + 1}`, inventories };
}

/** Boots a tenth of the servers on each host that will be drained, while the others are disabled. */
async function fill(cloud: EmbeddedCloud, hosts: readonly HostConfig[]): Promise<void> {
  const access = { api: cloud.apiUrl, token: null };
  const setDisabled = (disabled: boolean) =>
    Promise.all(
      hosts.slice(DRAINED).map(({ name }) => callOperatorsApi(access, "PUT", `/hosts/${name}`, { disabled })),
    );
  await callCompute(access, "POST", "/flavors", { flavor: { id: "s", name: "s", vcpus: 1, ram: 64, disk: 1 } });
  await setDisabled(true);
  await within(LIMIT_MS, async () => {
    const { rows } = await inCell<{ closed: string }>(cloud, "select count(*) as closed from hosts where disabled");
    return Number(rows[0]?.closed) === OTHERS;
  });
  // In this process views follow at once, so the weighers spread the boots.
  for (let booted = 0; booted < SERVERS; booted += BOOTS_PER_CALL) {
    const server = { name: "drained", flavorRef: "s", imageRef: "", networks: "none", min_count: BOOTS_PER_CALL };
    await callCompute(access, "POST", "/servers", { server });
  }
  await within(LIMIT_MS, async () => {
    const { rows } = await inCell<{ up: string }>(cloud, "select count(*) as up from servers where status = 'ACTIVE'");
    return Number(rows[0]?.up) === SERVERS;
  });
  await setDisabled(false);
}

async function report(cloud: EmbeddedCloud, hosts: readonly HostConfig[]): Promise<void> {
  const access = { api: cloud.apiUrl, token: null };
  const drained = hosts.slice(0, DRAINED);
  await Promise.all(drained.map(({ name }) => callOperatorsApi(access, "PUT", `/hosts/${name}`, { disabled: true })));
  const startedMs = performance.now();
  const reports = await Promise.all(drained.map(({ name }) => new Drain(access, { host: name, live: false }).run()));
  const seconds = (performance.now() - startedMs) / 1000;
  const moved = reports.reduce((sum, one) => sum + one.moved, 0);
  const stayed = reports.flatMap((one) => one.stayed);
  const { rows } = await inCell<{ up: string; left: string }>(
    cloud,
    `select count(*) filter (where status = 'ACTIVE' and not host = any ('{${drained.map(({ name }) => name)}}')) as up
     from servers`,
  );
  const audit = await auditTwice({
    apiUrl: cloud.databaseUrl,
    cells: cloud.cells,
    ...{ pauseMs: 0, patienceMs: 0, conductorSettings: conductorSettingNames },
  });
  const lost = SERVERS - Number(rows[0]?.up) - stayed.length;
  process.stdout.write(
    `${moved} cold migrations off ${DRAINED} hosts, confirmed: ${seconds.toFixed(1)} s, ${(moved / seconds).toFixed(0)} moves/s, ` +
      `stayed ${stayed.length}, lost ${lost}, violations of the laws ${audit.violations.length}\n`,
  );
  for (const { id, why } of stayed.slice(0, 5)) process.stdout.write(`  ${id}: ${why}\n`);
}

function inCell<Row extends object>(cloud: EmbeddedCloud, sql: string) {
  return withClient(cloud.cells[0]?.databaseUrl ?? "", (client) => client.query<Row>(sql));
}

async function within(limitMs: number, isDone: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await isDone())) {
    if (performance.now() > deadline) throw new Error(`not done within ${limitMs / 1000} s`);
    await delay(POLL_MS);
  }
}
