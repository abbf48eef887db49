import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { LxdClient } from "../../adapters/lxd/lxd-client.ts";
import { systemClock } from "../../runtime/clock.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import type { FoundContainer } from "../../services/compute-agent/lxd/lxd-container.ts";
import { LxdDriver, type LxdDriverOptions } from "../../services/compute-agent/lxd/lxd-driver.ts";
import { serverSpec } from "../contract/cell-fixtures.ts";
import { eventually } from "./eventually.ts";

/** The id of the image whose containers print rising numbers on their console. */
export const TICKING_IMAGE_ID = "5bd6a2ae-6d31-4cbf-9d4e-4f3c7f1c9a01";

export const TICKING_FLAVOR = {
  ...{ id: "ticking", name: "ticking", vcpus: 1, memoryMib: 32, diskGib: 0 },
  ...{ ephemeralGib: 0, swapMib: 0, extraSpecs: {} },
};

/**
 * Prints the next number on its console five times a second, and continues from its last number when it is started with the same disk.
 */
const INIT = `#!/bin/dash
trap 'exit 0' PWR
count=0
[ -e /count ] && read -r count < /count
while :; do
  echo "tick $count" > /dev/console
  count=$((count + 1))
  echo "$count" > /count
  sleep 0.2 &
  wait $!
done
`;
const METADATA = "architecture: x86_64\ncreation_date: 1700000000\nproperties:\n  description: counts on its console\n";

/** A separate LXD with its own directory, a storage pool and an image. */
export interface LxdDaemon {
  readonly socketPath: string;
  readonly logs: string;
  readonly images: string;
  /** All containers of this LXD. */
  containers(): Promise<readonly FoundContainer[]>;
  /** Removes all containers, and ends LXD. */
  close(): Promise<void>;
}

/** Starts LXD. Resolves with the reason when this machine cannot run containers with it. */
export async function startLxd(): Promise<LxdDaemon | string> {
  if (process.getuid?.() !== 0) return "LXD must be started by root";
  try {
    execFileSync("lxd", ["--version"], { stdio: "ignore" });
  } catch {
    return "lxd is missing; npm run test:long installs it as root on Debian";
  }
  const dir = makeOwnedDir("lxd");
  const state = join(dir, "state");
  const images = join(dir, "images");
  mkdirSync(state, { mode: 0o711 });
  mkdirSync(images);
  // Containers run as other users, which must reach their root disks.
  chmodSync(dir, 0o711);
  writeTickingImage(dir, join(images, `${TICKING_IMAGE_ID}.tar.gz`));
  const daemon = spawn("lxd", ["--group", "root"], { env: { ...process.env, LXD_DIR: state }, stdio: "ignore" });
  const opened = openDaemon(daemon, { dir, state, images });
  try {
    await opened.begin();
    return opened;
  } catch (error) {
    await opened.close();
    return `LXD does not work here: ${(error as Error).message}`;
  }
}

/** Starts two, as two machines have them. Resolves with the reason when this machine cannot run them. */
export async function startTwoLxds(): Promise<readonly [LxdDaemon, LxdDaemon] | string> {
  const first = await startLxd();
  if (typeof first === "string") return first;
  const second = await startLxd();
  if (typeof second !== "string") return [first, second];
  await first.close();
  return `a second LXD: ${second}`;
}

function openDaemon(
  daemon: ChildProcess,
  { dir, state, images }: { readonly dir: string; readonly state: string; readonly images: string },
): LxdDaemon & { begin(): Promise<void> } {
  const socketPath = join(state, "unix.socket");
  const logs = join(state, "logs");
  const client = new LxdClient(socketPath);
  const containers = async () => (await client.call("/1.0/instances?recursion=1")) as readonly FoundContainer[];
  const ended = new Promise((resolve) => daemon.once("exit", resolve).once("error", resolve));
  return {
    socketPath,
    logs,
    images,
    containers,
    async begin() {
      const answers = () =>
        client.call("/1.0").then(
          () => true,
          () => false,
        );
      await eventually("LXD to answer", answers, { everyMs: 50, withinMs: 30_000 });
      await client.call("/1.0/storage-pools", { method: "POST", body: { name: "default", driver: "dir" } });
      await probe({ socketPath, logs, images });
    },
    async close() {
      const left = await containers().catch(() => []);
      await Promise.allSettled(left.map(({ name }) => removeContainer(client, name)));
      client.close();
      daemon.kill("SIGTERM");
      const killing = setTimeout(() => daemon.kill("SIGKILL"), 20_000);
      await ended;
      clearTimeout(killing);
      for (const mount of mountsBelow(state)) execFileSync("umount", ["--lazy", mount]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Runs a container, which needs name spaces and control groups that not every machine has. */
async function probe(daemon: Pick<LxdDaemon, "socketPath" | "logs" | "images">): Promise<void> {
  const driver = lxdDriverIn(daemon);
  const guest = { host: "probe", serverUuid: "probe", attemptId: "probe/0" };
  const signal = AbortSignal.timeout(60_000);
  try {
    const server = serverSpec(1, { flavor: TICKING_FLAVOR, imageRef: TICKING_IMAGE_ID });
    const order = { ...guest, server, allocation: undefined, movedFrom: null };
    const prepared = await driver.prepare(order, { signal, onStep: () => undefined });
    if (prepared.kind === "failed") throw new Error(prepared.reason);
    await driver.start(guest, signal);
    await driver.destroy(guest);
  } finally {
    driver.close();
  }
}

async function removeContainer(client: LxdClient, name: string): Promise<void> {
  const stop = { method: "PUT", body: { action: "stop", force: true, timeout: -1 } } as const;
  await client.run(`/1.0/instances/${name}/state`, stop).catch(() => undefined);
  await client.run(`/1.0/instances/${name}`, { method: "DELETE" });
}

const mountsBelow = (dir: string): readonly string[] =>
  readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((path) => path.startsWith(`${dir}/`))
    .toReversed();

/** An image of a shell and what it needs, taken from this machine. */
function writeTickingImage(dir: string, file: string): void {
  const image = join(dir, "image");
  const root = join(image, "rootfs");
  for (const name of ["dev", "proc", "sys", "tmp", "run", "etc", "sbin"])
    mkdirSync(join(root, name), { recursive: true });
  for (const program of ["/bin/dash", "/bin/sleep"]) {
    const linked = execFileSync("ldd", [program], { encoding: "utf8" });
    for (const path of [program, ...[...linked.matchAll(/(\/\S+)/g)].map(([, path = ""]) => path)]) {
      mkdirSync(join(root, dirname(path)), { recursive: true });
      copyFileSync(path, join(root, path));
    }
  }
  writeFileSync(join(root, "sbin/init"), INIT, { mode: 0o755 });
  writeFileSync(join(image, "metadata.yaml"), METADATA);
  execFileSync("tar", ["-C", image, "-czf", file, "metadata.yaml", "rootfs"]);
}

export function lxdDriverIn(
  daemon: Pick<LxdDaemon, "socketPath" | "logs" | "images">,
  options: Partial<LxdDriverOptions> = {},
): LxdDriver {
  return new LxdDriver({
    ...{ clock: systemClock, socketPath: daemon.socketPath, logsPath: daemon.logs },
    ...{
      imagesPath: daemon.images,
      storagePool: "default",
      bridge: null,
      inboundAddress: "127.0.0.1",
      shutdownMs: 5_000,
    },
    ...options,
  });
}
