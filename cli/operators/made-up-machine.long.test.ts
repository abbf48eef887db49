import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { InspectedHost } from "../../core/discovery/inspect-host.ts";
import type { TreeProvider } from "../../core/discovery/tree-provider.ts";
import { bootMadeUpMachine, madeUpMachineFiles } from "../../test/rigs/made-up-machine.ts";
import { whyNoQemu } from "../../test/rigs/qemu-guests.ts";

const ROOT = join(import.meta.dirname, "../..");
const files = whyNoQemu() === null ? madeUpMachineFiles(join(ROOT, "node_modules/.cache/berth-made-up-machine")) : null;
const why = files === null ? " (skipped: no QEMU, or apt-get cannot download a kernel)" : "";
const MIB = 1_024 ** 2;

describe.skipIf(files === null)(
  `berth host inspect on a machine of QEMU with a real kernel's /proc and /sys${why}`,
  () => {
    let dir = "";
    let host: InspectedHost & { readonly tree: TreeProvider };
    beforeAll(async () => {
      if (files === null) return;
      dir = mkdtempSync(join(tmpdir(), "berth-machine-"));
      const sysroot = await bootMadeUpMachine(files, dir);
      const printed = execFileSync(join(ROOT, "bin/berth"), ["host", "inspect", "--json", "--sysroot", sysroot]);
      host = JSON.parse(printed.toString());
    });
    afterAll(() => rmSync(dir, { recursive: true, force: true }));

    test("finds two sockets of two cores with two threads, in two NUMA nodes with their memory and distances", () => {
      expect([host.packages, host.cores, host.threads]).toEqual([2, 4, 8]);
      expect(host.numaNodes).toMatchObject([
        { id: 0, cpus: [0, 1, 2, 3], distances: [10, 21] },
        { id: 1, cpus: [4, 5, 6, 7], distances: [21, 10] },
      ]);
      // The kernel keeps a part of the 384 MiB of each node for itself.
      for (const { memoryBytes } of host.numaNodes ?? []) {
        expect(memoryBytes).toBeGreaterThan(300 * MIB);
        expect(memoryBytes).toBeLessThanOrEqual(384 * MIB);
      }
    });

    test("finds its huge pages, half of them at each node, and two isolated CPUs", () => {
      expect(host.hugepages?.find(({ sizeKib }) => sizeKib === 2_048)).toMatchObject({
        total: 12,
        nodes: [
          { id: 0, total: 6 },
          { id: 1, total: 6 },
        ],
      });
      expect(host.cpu.isolated).toEqual([6, 7]);
      expect(host.warnings.join("\n")).toContain("CPUs 6,7 are isolated");
    });

    test("finds an SR-IOV device at the second node, with two of its four virtual functions", () => {
      const card = host.pci?.find(({ sriov }) => sriov !== null);
      expect(card).toMatchObject({ vendor: "1b36", device: "0010", numaNode: 1, driver: "nvme" });
      expect(card?.sriov).toMatchObject({ totalVfs: 4, numVfs: 2 });
      const virtual = host.pci?.filter(({ physicalFunction }) => physicalFunction === card?.address) ?? [];
      expect(virtual.map(({ address }) => address)).toEqual(card?.sriov?.vfs);
      const groups = new Set([card, ...virtual].map((one) => one?.iommuGroup));
      expect([groups.size, groups.has(null)]).toEqual([3, false]);
    });

    test("makes a provider tree that offers all of this where it is", () => {
      const [first, second] = host.tree.children ?? [];
      for (const node of [first, second]) {
        expect(node?.inventories).toMatchObject({ VCPU: { total: 4 }, CUSTOM_MEMORY_PAGES_2048KB: { total: 6 } });
        expect(node?.traits).toEqual(expect.arrayContaining(["HW_NUMA_ROOT", "HW_CPU_HYPERTHREADING"]));
      }
      expect(first?.children ?? []).toEqual([]);
      expect(second?.children).toMatchObject([{ inventories: { CUSTOM_PCI_1B36_0010: { total: 2 } } }]);
    });
  },
);
