import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readHostsFile, treeOf } from "../../services/compute-agent/host-config.ts";
import { makeSysroot, numaNode, sriovCard, twoSockets } from "../../test/rigs/made-up-sysroot.ts";

const main = join(import.meta.dirname, "../main.ts");
const GIB_KIB = 1024 ** 2;

function inspect(...flags: readonly string[]): string {
  return execFileSync(process.execPath, [main, "host", "inspect", ...flags], { encoding: "utf8" });
}

function madeUpHost(): string {
  return makeSysroot(
    twoSockets(),
    numaNode(0, "0-1,4-5", 8 * GIB_KIB, { 2048: 512 }),
    numaNode(1, "2-3,6-7", 8 * GIB_KIB, { 2048: 0 }),
    sriovCard(),
  );
}

test("prints a host and its tree as JSON, which a compute agent accepts as a hosts file", () => {
  const sysroot = madeUpHost();
  const sets = ["--cpu-shared-set", "0-3,^1", "--cpu-dedicated-set", "4-7"];
  const read = JSON.parse(inspect("--sysroot", sysroot, "--json", "--host", "h1", ...sets));
  expect(read).toMatchObject({ packages: 2, cores: 4, threads: 8, memoryBytes: 16 * 1024 ** 3, diskBytes: null });
  expect(read.numaNodes.map((node: { cpus: unknown }) => node.cpus)).toEqual([
    [0, 1, 4, 5],
    [2, 3, 6, 7],
  ]);
  expect(read.pci).toHaveLength(3);
  expect(read.warnings.join("\n")).toContain("the disk is unknown");
  const path = join(sysroot, "hosts.json");
  writeFileSync(path, JSON.stringify({ hosts: [read.tree] }));
  const [host] = readHostsFile(path);
  const providers = treeOf(host!).providers.map(({ name, inventories }) => [
    name,
    Object.fromEntries(Object.entries(inventories).map(([resourceClass, { total }]) => [resourceClass, total])),
  ]);
  expect(Object.fromEntries(providers)).toEqual({
    h1: {},
    h1_numa0: { VCPU: 1, PCPU: 2, MEMORY_MB: 8192, CUSTOM_MEMORY_PAGES_2048KB: 512 },
    h1_numa1: { VCPU: 2, PCPU: 2, MEMORY_MB: 8192 },
    "h1_numa1_0000:3b:00.0": { SRIOV_NET_VF: 2 },
  });
});

test("prints a host for people, too, and with a flat tree on request", () => {
  const text = inspect("--sysroot", madeUpHost(), "--flat", "--host", "h1");
  expect(text).toMatch(/^packages \/ cores \/ threads +2 \/ 4 \/ 8$/m);
  expect(text).toMatch(/^h1 +VCPU +8 +0/m);
  expect(text).toMatch(/^h1 +MEMORY_MB +16384 +512$/m);
  expect(text).toMatch(/^h1_0000:3b:00\.0 +SRIOV_NET_VF +2 +0 /m);
  expect(text).toMatch(/^0000:3b:00\.0 +8086:1572 .* 2 of 4 virtual functions, ens1f0 \(10000 Mb\/s\)$/m);
  expect(text).toMatch(/^disk +unknown$/m);
});

test("prints the machine that it runs on, with its disk", () => {
  const read = JSON.parse(inspect("--json"));
  expect(read.threads).toBeGreaterThan(0);
  expect(read.memoryBytes).toBeGreaterThan(0);
  expect(read.diskBytes).toBeGreaterThan(0);
});

test.each([
  [["--cpu-dedicated-set", "6-9"], "cpu-dedicated-set names CPUs that are not online: 8,9; online are 0-7"],
  [["--cpu-shared-set", "0-3", "--cpu-dedicated-set", "3"], "both name CPUs 3"],
  [["--cpu-shared-set", "3-1"], "CPUs like 0-7,^3"],
  [["--pci-devices", "8086"], "VENDOR:PRODUCT or an address"],
  [["--sysroot", "/nowhere"], "name a directory that contains proc or sys"],
])("refuses %j and says what is allowed", (flags, expected) => {
  const args = [main, "host", "inspect", "--sysroot", madeUpHost(), ...flags];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(expected) });
});
