import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { NANO_IMAGE_ID } from "../adapters/qemu/nano-image.ts";
import { makeVirtualHostsDirs, virtualHosts } from "../cli/dev/virtual-hosts.ts";
import { type EmbeddedCloud, startCloud } from "../cloud/embedded-cloud.ts";
import { systemClock } from "../runtime/clock.ts";
import { createLogger } from "../runtime/logger.ts";
import { makeOwnedDir } from "../runtime/owned-dir.ts";
import type { Driver } from "../services/compute-agent/driver.ts";
import { QemuDriver } from "../services/compute-agent/qemu/qemu-driver.ts";
import { guestsOnDisk, whyNoQemu } from "../test/rigs/qemu-guests.ts";
import { measuredOf, report } from "./measure.ts";

const BOOTS = 10;
const MOVES = 10;
const LIMIT_MS = 60_000;
const POLL_MS = 5;

/** The driver's reports of the hand-offs, one after the other. */
interface Halts {
  /** The time when the source had handed off all data, and how long its guest had been paused by then. */
  handedAtMs: number;
  haltedMs: number;
  /** The time from the halt of the source's guest to the start of the destination's, for each move. */
  readonly downtimesMs: number[];
}

/** Measures servers that are virtual machines of 16 MiB (TCG) on two hosts of this machine that share a disk: first tick, live moves. */
export async function run(): Promise<void> {
  const missing = whyNoQemu();
  if (missing !== null) {
    process.stdout.write(`  skipped: ${missing}\n`);
    return;
  }
  const dataDir = makeOwnedDir("qemu");
  const dirs = makeVirtualHostsDirs(dataDir, join(dataDir, "images"));
  mkdirSync(dirs.instancesPath, { recursive: true });
  const halts: Halts = { handedAtMs: 0, haltedMs: 0, downtimesMs: [] };
  const qemu = driverOf(dirs, halts);
  const cloud = await startCloud({
    ...{ databaseUrl: null, dataDir: null, schedulers: 1, conductors: 1 },
    cells: [{ name: "cell-1", hosts: virtualHosts("host", 2, dirs) }],
    openDriver: (hosts) => ({
      driver: timed(qemu, halts),
      guests: () => qemu.guests(new Set(hosts.map(({ name }) => name))),
      close: () => qemu.close(),
    }),
    listen: { host: "127.0.0.1", port: 0 },
    logger: createLogger({ name: "bench", level: "silent" }),
    fail: (error) => {
      throw error;
    },
  });
  try {
    await measureGuests(cloud, dirs.instancesPath, halts);
  } finally {
    await cloud.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function measureGuests(cloud: EmbeddedCloud, instancesPath: string, halts: Halts): Promise<void> {
  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const headers = { "content-type": "application/json", "openstack-api-version": "compute 2.84" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${cloud.apiUrl}/v2.1${path}`, { method, headers, ...sent });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? {} : JSON.parse(text)) as Answer;
  };
  await call("POST", "/flavors", { flavor: { id: "nano", name: "nano", vcpus: 1, ram: 16, disk: 1 } });
  const hasTicked = (id: string) => guestsOnDisk(instancesPath, id).some(({ ticks }) => ticks.length > 0);
  const shown = async (id: string) => (await call("GET", `/servers/${id}`)).server;
  const isAtRest = async (id: string) => (await shown(id))["OS-EXT-STS:task_state"] === null;
  const hostOf = async (id: string) => (await shown(id))["OS-EXT-SRV-ATTR:host"];
  const faultOf = async (id: string) => (await shown(id)).fault?.message ?? null;
  const server = { name: "nano", flavorRef: "nano", imageRef: NANO_IMAGE_ID, networks: "none" };
  const bootsMs: number[] = [];
  const ids: string[] = [];
  for (let index = 0; index <= BOOTS; index += 1) {
    const startedMs = performance.now();
    const { id } = (await call("POST", "/servers", { server })).server;
    await within(
      `the first tick of server ${id}`,
      () => hasTicked(id),
      () => faultOf(id),
    );
    // The first one also copies the image.
    if (index > 0) bootsMs.push(performance.now() - startedMs);
    ids.push(id);
  }
  const [moved = ""] = ids;
  const movesMs: number[] = [];
  for (let index = 0; index < MOVES; index += 1) {
    const source = await hostOf(moved);
    const startedMs = performance.now();
    await call("POST", `/servers/${moved}/action`, { "os-migrateLive": { host: null, block_migration: "auto" } });
    await within(
      `the end of live migration ${index + 1}`,
      () => isAtRest(moved),
      () => faultOf(moved),
    );
    movesMs.push(performance.now() - startedMs);
    if ((await hostOf(moved)) === source) throw new Error(`live migration ${index + 1} was given up`);
  }
  for (const id of ids) await call("DELETE", `/servers/${id}`);
  await within("the end of all guests", () => ids.every((id) => guestsOnDisk(instancesPath, id).length === 0));
  report("boot, POST to the guest's first tick, p50", measuredOf(bootsMs), "ms");
  report("live migration, POST to its end, p50", measuredOf(movesMs), "ms");
  report("  its downtime: the source's halt to the destination's run", measuredOf(halts.downtimesMs), "ms");
}

interface Answer {
  readonly server: {
    readonly id: string;
    readonly "OS-EXT-STS:task_state": string | null;
    readonly "OS-EXT-SRV-ATTR:host": string | null;
    readonly fault?: { readonly message: string };
  };
}

function driverOf(dirs: { readonly instancesPath: string; readonly imagesPath: string }, halts: Halts): QemuDriver {
  return new QemuDriver({
    ...dirs,
    ...{
      clock: systemClock,
      program: "qemu-system-x86_64",
      transferHost: "127.0.0.1",
      hasSecretTransfers: true,
      hasDisplays: false,
      userNetwork: "isolated",
      sysroot: "/",
    },
    ...{ imageCache: join(dirs.instancesPath, "_base"), shutdownMs: 5_000, pressAgainMs: 1_000 },
    defaults: async () => ({
      machineType: "pc-q35-7.2",
      accel: "tcg",
      cpuModel: "qemu64",
      bridge: null,
      display: null,
    }),
    onHandedOver: (_guest, { haltedMs }) => {
      halts.handedAtMs = performance.now();
      halts.haltedMs = haltedMs;
    },
  });
}

/** The driver, which also notes how long a guest stood still when it runs at its destination. */
function timed(driver: QemuDriver, halts: Halts): Driver {
  return new Proxy<Driver>(driver, {
    get(target, key: keyof Driver) {
      const own = target[key];
      if (key !== "start") return typeof own === "function" ? own.bind(target) : own;
      return async (...args: Parameters<Driver["start"]>) => {
        await target.start(...args);
        if (halts.handedAtMs > 0) halts.downtimesMs.push(performance.now() - halts.handedAtMs + halts.haltedMs);
        halts.handedAtMs = 0;
      };
    },
  });
}

/** Polls until `isDone`. Throws an Error after a minute, with the fault of the server that is waited for, if it has one. */
async function within(
  what: string,
  isDone: () => boolean | Promise<boolean>,
  faultOf: () => Promise<string | null> = async () => null,
): Promise<void> {
  const deadlineMs = performance.now() + LIMIT_MS;
  while (!(await isDone())) {
    if (performance.now() > deadlineMs)
      throw new Error(`waited ${LIMIT_MS / 1_000} s in vain for ${what}: ${(await faultOf()) ?? "there is no fault"}`);
    await delay(POLL_MS);
  }
}
