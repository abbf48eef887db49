import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { QmpClient } from "../../../adapters/qemu/qmp-client.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import { GUEST_FILES } from "../../../adapters/qemu/virtual-machine.ts";
import type { MachineLayout } from "../../../core/pinning/machine-layout.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  killQemu,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
  whyNotTwoCpus,
} from "../../../test/rigs/qemu-guests.ts";
import type { PrepareOutcome } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const DEDICATED = { "hw:cpu_policy": "dedicated" };
const skipped = whyNoQemu() ?? whyNotTwoCpus();

/** A host with one CPU for a guest alone, and the other one for all others. `nodes` are NUMA nodes that the host claims to have. */
const oneDedicated = (dedicated: 0 | 1, nodes: readonly number[] = [0]): MachineLayout => ({
  places: nodes.map((node) => ({
    provider: `node${node}`,
    node,
    dedicated: node === nodes[0] ? [dedicated] : [],
    shared: [1 - dedicated],
    pagesKib: [],
  })),
  cores: [],
});

/** The CPUs that the kernel gives to a thread. */
const cpusOf = (pid: number, thread: number): string =>
  /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"))?.[1] ?? "";

describe.skipIf(skipped !== null)(`CPUs of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  let dir: QemuGuestsDir;
  let driver: QemuDriver;
  let layouts: Record<string, MachineLayout>;

  const opened = () => qemuDriverIn(dir, { layoutOf: (host) => layouts[host] ?? null });
  beforeEach(() => {
    dir = makeQemuGuestsDir();
    layouts = { h1: oneDedicated(1), h2: oneDedicated(0) };
    driver = opened();
  });
  afterEach(async () => {
    driver.close();
    await dir.remove();
  });

  const nameOf = (index: number, host = "h1"): GuestName => ({
    ...{ host, serverUuid: serverSpec(index).uuid, attemptId: `${randomUUID()}/0` },
  });
  function prepare(
    name: GuestName,
    extraSpecs: Record<string, string>,
    { from, memory = "node0" }: { readonly from?: GuestName; readonly memory?: string } = {},
  ): Promise<PrepareOutcome> {
    const cpus = extraSpecs["hw:cpu_policy"] === "dedicated" ? "PCPU" : "VCPU";
    const server = {
      ...serverSpec(1, { flavor: { ...NANO_FLAVOR, extraSpecs }, imageRef: NANO_IMAGE_ID }),
      uuid: name.serverUuid,
    };
    const items = [
      { provider: "node0", resourceClass: cpus, amount: 1 },
      { provider: memory, resourceClass: "MEMORY_MB", amount: 16 },
    ];
    const movedFrom = from === undefined ? null : { ...from, by: "live-migrate" };
    const order = { ...name, server, movedFrom, allocation: { items, mappings: {} } };
    return driver.prepare(order, { signal: NEVER, onStep: () => undefined });
  }
  async function running(index: number, extraSpecs: Record<string, string>): Promise<GuestName> {
    const name = nameOf(index);
    expect(await prepare(name, extraSpecs)).toEqual({ kind: "prepared" });
    await driver.start(name, NEVER);
    return name;
  }
  const dirOf = (name: GuestName) =>
    guestsOnDisk(dir.path, name.serverUuid).find(({ attemptId }) => attemptId === name.attemptId)?.dir ?? "";
  const pidOf = (name: GuestName) => findRunningQemu(dirOf(name))?.pid ?? 0;
  /** The CPUs of the guest's vCPU, as the kernel says, and those of all other threads of its QEMU. */
  async function threads(name: GuestName): Promise<{ readonly vcpu: string; readonly others: readonly string[] }> {
    // A monitor has one client at a time.
    driver.close();
    driver = opened();
    const monitor = await QmpClient.connect(join(dirOf(name), GUEST_FILES.monitor));
    const [vcpu] = (await monitor.execute("query-cpus-fast")) as readonly { readonly "thread-id": number }[];
    monitor.close();
    const pid = pidOf(name);
    const thread = vcpu?.["thread-id"] ?? 0;
    const others = readdirSync(`/proc/${pid}/task`)
      .map(Number)
      .filter((one) => one !== thread);
    expect(others.length).toBeGreaterThan(0);
    return { vcpu: cpusOf(pid, thread), others: [...new Set(others.map((one) => cpusOf(pid, one)))] };
  }
  const ticks = (name: GuestName, over = 0) =>
    eventually("the guest to tick", () =>
      guestsOnDisk(dir.path, name.serverUuid).some(
        (guest) => guest.attemptId === name.attemptId && guest.ticks.length > over,
      ),
    );

  test("a guest has its dedicated CPU for itself, and the guests without one run on the shared CPU alone", async () => {
    const dedicated = await running(1, DEDICATED);
    const shared = await running(2, {});
    await ticks(dedicated);
    expect(await threads(dedicated)).toEqual({ vcpu: "1", others: ["1"] });
    expect(await threads(shared)).toEqual({ vcpu: "0", others: ["0"] });
  });

  test("no second guest gets the CPU, nor after the agent's restart, until the first guest is gone", async () => {
    const first = await running(1, DEDICATED);
    const refusal = {
      kind: "failed",
      failure: "reschedule",
      reason: "the guest needs 1 dedicated CPUs of NUMA node 0, which has 1, of which none is free",
    };
    const [second, third] = [nameOf(2), nameOf(3)];
    expect(await prepare(second, DEDICATED)).toEqual(refusal);
    await driver.power(first, "stop", NEVER);
    driver.close();
    driver = opened();
    await driver.adopt([{ ...first, state: "stopped" }]);
    expect(await prepare(second, DEDICATED)).toEqual(refusal);
    await driver.destroy(first);
    expect(await Promise.all([prepare(second, DEDICATED), prepare(third, DEDICATED)])).toEqual([
      { kind: "prepared" },
      refusal,
    ]);
  });

  test("a guest whose record cannot be read may have any CPU, so that none is given away", async () => {
    const first = await running(1, DEDICATED);
    await driver.power(first, "stop", NEVER);
    writeFileSync(join(dirOf(first), "guest.json"), "{");
    expect(await prepare(nameOf(2), DEDICATED)).toMatchObject({
      failure: "reschedule",
      reason: expect.stringMatching(
        /^the dedicated CPUs and devices that are free are unknown, because .*guest.json is damaged/,
      ),
    });
    expect(await prepare(nameOf(3), {})).toEqual({ kind: "prepared" });
  });

  test("a guest has the same CPU at each start, even if its agent died before it could confine the threads of QEMU", async () => {
    const name = nameOf(1);
    await prepare(name, DEDICATED);
    // As if QEMU had just been started: its threads may run anywhere.
    execFileSync("taskset", ["-acp", "0-1", String(pidOf(name))], { stdio: "ignore" });
    expect(await threads(name)).toEqual({ vcpu: "0-1", others: ["0-1"] });
    await driver.start(name, NEVER);
    expect(await threads(name)).toEqual({ vcpu: "1", others: ["1"] });
    killQemu(dirOf(name));
    await eventually("the end of QEMU", () => pidOf(name) === 0);
    await driver.power(name, "start", NEVER);
    expect(await threads(name)).toEqual({ vcpu: "1", others: ["1"] });
    await driver.power(name, "hard-reboot", NEVER);
    expect(await threads(name)).toEqual({ vcpu: "1", others: ["1"] });
  });

  test("a guest whose CPU the machine does not have is not started, and no QEMU is left of it", async () => {
    layouts.h1 = { ...oneDedicated(1), places: [{ ...oneDedicated(1).places[0]!, dedicated: [1_000] }] };
    const name = nameOf(1);
    expect(await prepare(name, DEDICATED)).toMatchObject({
      failure: "reschedule",
      reason: expect.stringMatching(/^the guest cannot be confined to the host's CPUs 1000/),
    });
    await eventually("the end of QEMU", () => pidOf(name) === 0);
  });

  test("a guest that moves while it runs gets the CPU and the memory of its new host, which is backed differently", async () => {
    const source = await running(1, DEDICATED);
    await ticks(source);
    layouts.h2 = oneDedicated(0, [0, 1]);
    const destination = { ...nameOf(1, "h2"), serverUuid: source.serverUuid };
    const prepared = await prepare(destination, DEDICATED, { from: source });
    const listensAt = prepared.kind === "prepared" ? (prepared.listensAt ?? "") : "";
    const to = { toHost: "h2", toAttemptId: destination.attemptId, listensAt, live: true, force: false };
    await driver.handOff({ ...source, ...to, orderId: "o" }, NEVER, () => undefined);
    await driver.start(destination, NEVER);
    await driver.destroy(source);
    await ticks(destination);
    expect(await threads(destination)).toEqual({ vcpu: "0", others: ["0"] });
    expect(readFileSync(`/proc/${pidOf(destination)}/cmdline`, "utf8")).toContain("host-nodes=0,policy=bind");
    expect(await prepare(nameOf(2), DEDICATED)).toEqual({ kind: "prepared" });
  });

  test("a guest of two NUMA nodes gets the memory of each from the node that its claim names", async () => {
    layouts.h1 = oneDedicated(1, [0, 7]);
    const specs = { "hw:numa_nodes": "2" };
    const server = serverSpec(1, {
      flavor: { ...NANO_FLAVOR, vcpus: 2, memoryMib: 32, extraSpecs: specs },
      imageRef: NANO_IMAGE_ID,
    });
    const build = (second: string) => {
      const items = ["node0", second].flatMap((provider) => [
        { provider, resourceClass: "VCPU", amount: 1 },
        { provider, resourceClass: "MEMORY_MB", amount: 16 },
      ]);
      const mappings = { _NUMA0: "node0", _NUMA1: second };
      const name = nameOf(1);
      const order = { ...name, server, movedFrom: null, allocation: { items, mappings } };
      return driver.prepare(order, { signal: NEVER, onStep: () => undefined }).then((outcome) => ({ name, outcome }));
    };
    // This machine has no node 7.
    expect((await build("node7")).outcome).toMatchObject({
      failure: "reschedule",
      reason: expect.stringContaining("cannot bind memory to host NUMA nodes"),
    });
    const { name, outcome } = await build("node0");
    expect(outcome).toEqual({ kind: "prepared" });
    await driver.start(name, NEVER);
    await ticks(name);
    driver.close();
    const monitor = await QmpClient.connect(join(dirOf(name), GUEST_FILES.monitor));
    const memory = (await monitor.execute("query-memdev")) as readonly { readonly id: string }[];
    const bound = { size: 16 * 1_048_576, policy: "bind", "host-nodes": [0] };
    expect(memory.toSorted((a, b) => a.id.localeCompare(b.id))).toMatchObject([
      { id: "ram-node0", ...bound },
      { id: "ram-node1", ...bound },
    ]);
    const cpus = (await monitor.execute("query-cpus-fast")) as readonly { readonly props: { "node-id": number } }[];
    expect(cpus.map(({ props }) => props["node-id"])).toEqual([0, 1]);
    monitor.close();
  });

  test("a guest with huge pages has them, or is refused by a host that lacks them", async () => {
    const free = Number(readFileSync("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "utf8"));
    const name = nameOf(1);
    const outcome = await prepare(name, { "hw:mem_page_size": "2048" });
    if (free < 8) {
      expect(outcome).toMatchObject({ failure: "reschedule", reason: expect.stringContaining("guest RAM") });
      return;
    }
    expect(outcome).toEqual({ kind: "prepared" });
    await driver.start(name, NEVER);
    await ticks(name);
    const pages = /^HugetlbPages:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pidOf(name)}/status`, "utf8"))?.[1];
    expect(Number(pages)).toBe(16_384);
  });
});
