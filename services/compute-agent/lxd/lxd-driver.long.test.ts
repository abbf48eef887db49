import { execFileSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { driverContract } from "../../../test/contract/driver.contract.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { lxdDriverIn, startLxd, TICKING_FLAVOR, TICKING_IMAGE_ID } from "../../../test/rigs/lxd-daemon.ts";
import type { PrepareOrder } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import { containerName } from "./container-of-server.ts";

const started = await startLxd();
const whySkipped = typeof started === "string" ? started : null;
const daemon = typeof started === "string" ? { socketPath: "", logs: "", images: "" } : started;
const NEVER = new AbortController().signal;
const WRONG_HASH = { os_hash_algo: "sha512", os_hash_value: "0".repeat(128) };
const server = (index: number) => serverSpec(index, { flavor: TICKING_FLAVOR, imageRef: TICKING_IMAGE_ID });

afterAll(async () => {
  if (typeof started !== "string") await started.close();
});

driverContract(
  "of containers",
  async () => {
    let driver = lxdDriverIn(daemon);
    return {
      hosts: ["h1", "h2"],
      open: async () => {
        driver.close();
        driver = lxdDriverIn(daemon);
        return driver;
      },
      server,
      close: async () => {
        const hosts = new Set(["h1", "h2"]);
        await Promise.all((await driver.guests(hosts)).map((guest) => driver.destroy(guest)));
        driver.close();
      },
    };
  },
  { whySkipped },
);

describe.skipIf(whySkipped !== null)("containers", () => {
  const driver = lxdDriverIn(daemon);
  const changed: GuestName[] = [];
  beforeAll(async () => {
    driver.watch((guest) => changed.push(guest));
    await driver.adopt([]);
  });
  afterEach(async () => {
    const left = await driver.guests(new Set(["h1", "h2"]));
    await Promise.all(left.map((guest) => driver.destroy(guest)));
  });
  afterAll(() => driver.close());

  const guestOf = (host: string, attemptId: string): GuestName => ({ host, serverUuid: server(1).uuid, attemptId });
  const prepare = (guest: GuestName, change: Partial<PrepareOrder> = {}) =>
    driver.prepare(
      { ...guest, server: server(1), allocation: undefined, movedFrom: null, ...change },
      { signal: NEVER, onStep: () => undefined },
    );
  const ticksOf = async (guest: GuestName) => {
    const text = Buffer.from((await driver.readConsole(guest, 100_000)) ?? []).toString();
    return [...text.matchAll(/^tick (\d+)\r?$/gm)].map(([, count]) => Number(count));
  };
  const ticking = (guest: GuestName) => eventually("ticks", async () => (await ticksOf(guest)).length > 2);
  const containerOf = async ({ host, attemptId }: GuestName) => {
    if (typeof started === "string") throw new Error(started);
    return (await started.containers()).find(({ name }) => name === containerName({ host, attemptId }));
  };

  test("have a dedicated CPU for themselves, also for an agent that restarts, and run on the shared CPU otherwise", async () => {
    const place = { provider: "n0", node: 0, dedicated: [1], shared: [0], pagesKib: [] };
    const open = () => lxdDriverIn(daemon, { layoutOf: () => ({ places: [place], cores: [] }) });
    let pinning = open();
    const build = (index: number, attempt: string, cpus: "PCPU" | "VCPU") => {
      const extraSpecs = { "hw:cpu_policy": cpus === "PCPU" ? "dedicated" : "shared" };
      const of = serverSpec(index, { flavor: { ...TICKING_FLAVOR, extraSpecs }, imageRef: TICKING_IMAGE_ID });
      const name = { host: "h1", serverUuid: of.uuid, attemptId: `${attempt}/0` };
      const allocation = { items: [{ provider: "n0", resourceClass: cpus, amount: 1 }], mappings: {} };
      const order = { ...name, server: of, allocation, movedFrom: null };
      return pinning.prepare(order, { signal: NEVER, onStep: () => undefined }).then((outcome) => ({ name, outcome }));
    };
    const cpusOf = async ({ host, attemptId }: GuestName) => {
      const client = new LxdClient(daemon.socketPath);
      const path = `/1.0/instances/${containerName({ host, attemptId })}/state`;
      const { pid } = (await client.call(path)) as { readonly pid: number };
      client.close();
      return /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    };
    try {
      const [one, two] = await Promise.all([build(1, "one", "PCPU"), build(2, "two", "PCPU")]);
      expect(one.outcome).toEqual({ kind: "prepared" });
      const refusal = { failure: "reschedule", reason: expect.stringContaining("of which none is free") };
      expect(two.outcome).toMatchObject(refusal);
      pinning.close();
      pinning = open();
      expect((await build(2, "again", "PCPU")).outcome).toMatchObject(refusal);
      const shared = await build(3, "shared", "VCPU");
      for (const { name } of [one, shared]) await pinning.start(name, NEVER);
      expect([await cpusOf(one.name), await cpusOf(shared.name)]).toEqual(["1", "0"]);
    } finally {
      pinning.close();
    }
  });

  test("have the CPUs and the memory of the flavor, and do not start by themselves", async () => {
    const guest = guestOf("h1", "limits/0");
    expect(await prepare(guest)).toEqual({ kind: "prepared" });
    expect((await containerOf(guest))?.config).toMatchObject({
      ...{ "limits.cpu": "1", "limits.memory": "32MiB", "boot.autostart": "false", "security.devlxd": "false" },
    });
  });

  test("that end by themselves are reported at once, count as shut down, and start again with their disk", async () => {
    const guest = guestOf("h1", "ends/0");
    await prepare(guest);
    await driver.start(guest, NEVER);
    await ticking(guest);
    const before = (await ticksOf(guest)).at(-1) ?? 0;
    changed.length = 0;
    await halt(guest);
    await eventually("the end", async () => (await driver.powersOf([guest]))[0] === "shut-down");
    await eventually("the agent to be told", () => changed.some(({ attemptId }) => attemptId === guest.attemptId));
    await driver.power(guest, "start", NEVER);
    // The log may still have the ticks of before, and the guest goes on from the number on its disk.
    await eventually("a later tick", async () => ((await ticksOf(guest)).at(-1) ?? 0) > before);
    expect(await driver.powersOf([guest])).toEqual(["running"]);
  });

  test("continue with their disk on another host of the same LXD", async () => {
    const [source, destination] = [guestOf("h1", "moved/0"), guestOf("h2", "moved/1")];
    await prepare(source);
    await driver.start(source, NEVER);
    await ticking(source);
    const prepared = await prepare(destination, { movedFrom: { ...source, by: "migrate" } });
    if (prepared.kind === "failed") throw new Error(prepared.reason);
    await expect(driver.start(destination, NEVER)).rejects.toThrow("has not arrived");
    const { listensAt = "" } = prepared;
    const order = { ...source, toHost: "h2", toAttemptId: "moved/1", live: false, force: false, orderId: "order/1" };
    await expect(driver.handOff({ ...order, listensAt: `${listensAt}0` }, NEVER)).rejects.toThrow("not the address");
    expect(await driver.powersOf([source])).toEqual(["running"]);
    const nowhere = { ...order, toAttemptId: "moved/2", listensAt };
    await expect(driver.handOff(nowhere, NEVER)).rejects.toThrow("no such guest");
    expect((await driver.guests(new Set(["h1", "h2"]))).map(({ attemptId }) => attemptId).sort()).toEqual([
      "moved/0",
      "moved/1",
    ]);
    await driver.handOff({ ...order, listensAt }, NEVER);
    const last = (await ticksOf(source)).at(-1) ?? 0;
    await driver.start(destination, NEVER);
    await ticking(destination);
    expect((await ticksOf(destination))[0]).toBeGreaterThanOrEqual(last);
  });

  test("are started by a hard reboot even if LXD refuses their interfaces, and the refusal is reported", async () => {
    const failed: unknown[] = [];
    const bridged = lxdDriverIn(daemon, {
      bridge: "berth-test-br",
      onWithoutInterfaces: ({ attemptId }, error) => failed.push([attemptId, String(error)]),
    });
    const guest = guestOf("h1", "refused/0");
    try {
      await prepare(guest);
      await bridged.start(guest, NEVER);
      const wrong = { portId: randomUUID(), slot: 1, macAddress: "nonsense" };
      await bridged.power(guest, "hard-reboot", NEVER, [wrong]);
      expect(await bridged.powersOf([guest])).toEqual(["running"]);
      expect(failed).toEqual([["refused/0", expect.stringContaining("MAC")]]);
    } finally {
      bridged.close();
    }
  });

  test("get interfaces on a bridge while they run, and lose them again", async ({ skip }) => {
    const bridge = "berth-test-br";
    try {
      execFileSync("ip", ["link", "add", "name", bridge, "type", "bridge"], { stdio: "ignore" });
    } catch {
      skip("this machine makes no bridges");
    }
    const bridged = lxdDriverIn(daemon, { bridge });
    const client = new LxdClient(daemon.socketPath);
    const guest = guestOf("h1", "bridged/0");
    try {
      const order = { ...guest, server: server(1), allocation: undefined, movedFrom: null };
      await bridged.prepare(order, { signal: NEVER, onStep: () => undefined });
      await bridged.start(guest, NEVER);
      const inside = async () => {
        const state = await client.call(`/1.0/instances/${containerName(guest)}/state`);
        const { network } = state as { readonly network: Readonly<Record<string, unknown>> };
        return Object.keys(network).filter((name) => name !== "lo");
      };
      const [one, other] = [1, 2].map((slot) => ({ portId: `port-${slot}`, slot }));
      if (one === undefined || other === undefined) throw new Error("there are two interfaces");
      for (const interfaces of [[one], [one, other], [other], []]) {
        await bridged.setInterfaces(guest, interfaces, NEVER);
        const names = interfaces.map(({ slot }) => `eth${slot - 1}`);
        await eventually(`${names}`, async () => (await inside()).sort().join() === names.join());
      }
      expect(await bridged.powersOf([guest])).toEqual(["running"]);
    } finally {
      await bridged.destroy(guest);
      bridged.close();
      client.close();
      execFileSync("ip", ["link", "delete", bridge], { stdio: "ignore" });
    }
  });

  test("are copied into images while they run, from which others start, and LXD keeps nothing of the copy", async () => {
    const source = guestOf("h1", "copied/0");
    await prepare(source);
    await driver.start(source, NEVER);
    await eventually("many ticks", async () => ((await ticksOf(source)).at(-1) ?? 0) > 10);
    const imageId = randomUUID();
    const client = new LxdClient(daemon.socketPath);
    try {
      const before = await client.call("/1.0/images");
      // An earlier process was killed in the middle: its snapshot, its image in LXD and its file are there.
      const container = containerName(source);
      const snapshots = `/1.0/instances/${container}/snapshots`;
      const left = { name: "berth-image", stateful: false };
      await client.run(snapshots, { method: "POST", body: left });
      const from = { type: "snapshot", name: `${container}/berth-image` };
      await client.run("/1.0/images", { method: "POST", body: { source: from, aliases: [{ name: imageId }] } });
      writeFileSync(join(daemon.images, `.${imageId}.old.part`), "half of an image");
      const calledOff = driver.snapshot(source, imageId, AbortSignal.abort(new Error("the copy was called off")));
      await expect(calledOff).rejects.toThrow("called off");
      expect(readdirSync(daemon.images).filter((name) => name.startsWith(imageId))).toEqual([]);
      await driver.snapshot(source, imageId, NEVER);
      expect(await driver.powersOf([source])).toEqual(["running"]);
      expect(await client.call("/1.0/images")).toEqual(before);
      expect(await client.call(snapshots)).toEqual([]);
      expect(readdirSync(daemon.images).filter((name) => name.endsWith(".part"))).toEqual([]);
    } finally {
      client.close();
    }
    const copy = guestOf("h2", "copy/0");
    expect(await prepare(copy, { server: { ...server(1), imageRef: imageId } })).toEqual({ kind: "prepared" });
    await driver.start(copy, NEVER);
    await eventually("ticks of the copy", async () => (await ticksOf(copy)).length > 0);
    // The number is on the disk that was copied.
    expect((await ticksOf(copy))[0]).toBeGreaterThan(5);
    rmSync(join(daemon.images, `${imageId}.tar.gz`));
  });

  test.each([
    [
      "an image that the host lacks",
      { imageRef: "6a9ff9cb-c9d8-4d6c-8f3f-0a4f0d0f2b11" },
      "reschedule",
      "has no file of image",
    ],
    ["another content than the cloud knows", { imageProperties: WRONG_HASH }, "reschedule", "SHA-512"],
    ["no image", { imageRef: "" }, "abort", "needs an image"],
    ["an ephemeral disk", { flavor: { ...TICKING_FLAVOR, ephemeralGib: 1 } }, "abort", "ephemeral"],
  ])("are not built with %s, and leave nothing", async (_, change, failure, reason) => {
    const guest = guestOf("h1", "refused/0");
    const outcome = await prepare(guest, { server: { ...server(1), ...change } });
    expect(outcome).toEqual({ kind: "failed", failure, reason: expect.stringContaining(reason) });
    expect(await driver.powersOf([guest])).toEqual(["missing"]);
  });

  test.each([
    ["text", "abort", "it is no whole tarball"],
    ["nothing", "abort", "it is no whole tarball"],
    ["half an image", "abort", "it is no whole tarball"],
    ["no metadata.yaml", "abort", "metadata.yaml is not in it"],
    ["no rootfs", "abort", "rootfs/ is not in it"],
    ["an architecture that LXD does not know", "abort", "its metadata.yaml is wrong"],
    ["another architecture than this host's", "reschedule", "isn't supported by this host"],
  ] as const)("are built on no host from an image with %s, and leave nothing", async (what, failure, reason) => {
    const imageRef = randomUUID();
    const file = join(daemon.images, imageRef);
    writeUnusableImage(file, what);
    onTestFinished(() => rmSync(file));
    const guest = guestOf("h1", "unusable/0");
    const sha512 = createHash("sha512").update(readFileSync(file)).digest("hex");
    const imageProperties = { os_hash_algo: "sha512", os_hash_value: sha512 };
    const outcome = await prepare(guest, { server: { ...server(1), imageRef, imageProperties } });
    expect(outcome).toEqual({ kind: "failed", failure, reason: expect.stringContaining(reason) });
    await driver.destroy(guest);
    expect(await driver.powersOf([guest])).toEqual(["missing"]);
  });

  test("refuse a live move everywhere, since no host could receive one", async () => {
    const movedFrom = { ...guestOf("h1", "live/0"), by: "live-migrate" };
    const outcome = await prepare(guestOf("h2", "live/1"), { movedFrom });
    expect(outcome).toMatchObject({ kind: "failed", failure: "abort" });
  });

  test("are left alone while LXD does not answer", async () => {
    const away = lxdDriverIn({ ...daemon, socketPath: `${daemon.socketPath}.gone` });
    try {
      expect(await away.powersOf([guestOf("h1", "any/0")])).toEqual(["unknown"]);
    } finally {
      away.close();
    }
  });
});

type Flaw =
  | "text"
  | "nothing"
  | "half an image"
  | "no metadata.yaml"
  | "no rootfs"
  | "an architecture that LXD does not know"
  | "another architecture than this host's";

function writeUnusableImage(file: string, flaw: Flaw): void {
  const image = contentOf(flaw);
  if (image !== null) writeFileSync(file, image);
  else writeFlawedTarball(file, flaw);
}

function contentOf(flaw: Flaw): string | Buffer | null {
  if (flaw === "text") return "this is no image\n".repeat(100);
  if (flaw === "nothing") return "";
  if (flaw !== "half an image") return null;
  const whole = readFileSync(join(daemon.images, `${TICKING_IMAGE_ID}.tar.gz`));
  return whole.subarray(0, whole.length / 2);
}

function writeFlawedTarball(file: string, flaw: Flaw): void {
  const content = mkdtempSync(join(tmpdir(), "berth-unusable-"));
  const ofOther = process.arch === "arm64" ? "x86_64" : "aarch64";
  const architecture = flaw === "an architecture that LXD does not know" ? "abacus" : ofOther;
  const metadata = `architecture: ${architecture}\ncreation_date: 1700000000\n`;
  try {
    if (flaw !== "no rootfs") mkdirSync(join(content, "rootfs"));
    if (flaw !== "no metadata.yaml") writeFileSync(join(content, "metadata.yaml"), metadata);
    execFileSync("tar", ["czf", file, "-C", content, "."]);
  } finally {
    rmSync(content, { recursive: true, force: true });
  }
}

/** Shuts a container down without an order of the driver, as its owner does from within. */
async function halt({ host, attemptId }: GuestName): Promise<void> {
  const client = new LxdClient(daemon.socketPath);
  const body = { action: "stop", force: false, timeout: 10 };
  try {
    await client.run(`/1.0/instances/${containerName({ host, attemptId })}/state`, { method: "PUT", body });
  } finally {
    client.close();
  }
}
