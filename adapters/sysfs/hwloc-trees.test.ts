import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type InspectedHost, inspectHost } from "../../core/discovery/inspect-host.ts";
import { readHostFiles } from "./read-host-files.ts";

// Real machines: the Linux trees in the tests of open-mpi/hwloc, with hwloc's findings. They are not part of this repository.
// BERTH_HWLOC_TREES is the path of `tests/hwloc/linux` in a copy of hwloc's.
const directory = process.env.BERTH_HWLOC_TREES ?? "";
// A path that does not exist is an error, and no reason to skip the tests.
const isThere = directory !== "";
if (!isThere)
  process.stderr.write("hwloc's trees of Linux machines are skipped: BERTH_HWLOC_TREES does not say where they are\n");

/** The compared counts, as hwloc counts them. A kind of object that hwloc does not show counts as 0 there and is unknown here. */
interface Counts {
  readonly packages: number;
  readonly cores: number;
  readonly threads: number;
  readonly nodes: number;
  /** The sum over all nodes, in MiB. */
  readonly memoryMib: number;
}

const ALL = ["packages", "cores", "threads", "nodes", "memoryMib"] as const;
const FORBIDDEN = "hwloc leaves out CPUs and nodes that a control group keeps from it; the host has them all the same";

/** Trees for which the two findings differ: in which counts, and why ours are right. */
const DIFFERENCES: Readonly<Record<string, { readonly counts: readonly (keyof Counts)[]; readonly why: string }>> = {
  "16amd64-4n4c-cgroup-distance-merge": { counts: ALL, why: FORBIDDEN },
  "16em64t-4s2ca2c-cpusetreorder": { counts: ["cores", "threads"], why: FORBIDDEN },
  "32amd64-4s2n4c-cgroup2": { counts: ALL, why: FORBIDDEN },
  "4fake-4gr1nu1pu": { counts: ["threads", "nodes", "memoryMib"], why: FORBIDDEN },
  "40intel64-4n10c+pci-conflicts": {
    counts: ["packages"],
    why: "hwloc drops a package because of PCI localities that contradict it; the machine has four",
  },
  "8em64t-2s2ca2c-buggynuma": {
    counts: ["memoryMib"],
    why: "all eight nodes name all CPUs: hwloc keeps the memory of one, and the machine has that of all (/proc/meminfo)",
  },
  fakeheterocpunuma: {
    counts: ["nodes"],
    why: "made-up nodes that share CPUs, which hwloc accepts only with a setting for its own tests",
  },
};

interface Tree {
  readonly name: string;
  readonly expected: string;
}

/**
 * Each tree with one expected output. An output that includes everything that control groups forbid is preferred, then one without options.
 */
function listTrees(): readonly Tree[] {
  const plans = readdirSync(directory)
    .filter((name) => name.endsWith(".test"))
    .map((name) => {
      const text = readFileSync(join(directory, name), "utf8");
      const field = (key: string) => new RegExp(`^${key}:\\s*(.*)$`, "m").exec(text)?.[1]?.trim() ?? "";
      const options = field("options");
      const rank = options.includes("--disallowed") ? 0 : options === "" && field("env") === "" ? 1 : 2;
      return { name: field("source"), expected: field("target"), rank };
    })
    .filter((plan) => plan.name.endsWith(".tar.bz2"))
    .sort((a, b) => a.rank - b.rank);
  return [...new Set(plans.map((plan) => plan.name))].sort().map((name) => plans.find((plan) => plan.name === name)!);
}

function inspectTree(name: string): InspectedHost {
  const unpacked = mkdtempSync(join(tmpdir(), "berth-hwloc-"));
  onTestFinished(() => rmSync(unpacked, { recursive: true, force: true }));
  execFileSync("tar", ["xjf", join(directory, name), "-C", unpacked]);
  const [sysroot = ""] = readdirSync(unpacked);
  return inspectHost(readHostFiles({ sysroot: join(unpacked, sysroot), instancesPath: "/" }));
}

function countsOf(host: InspectedHost): Counts {
  const bytes = host.numaNodes?.reduce((sum, node) => sum + (node.memoryBytes ?? 0), 0) ?? 0;
  return {
    ...{ packages: host.packages ?? 0, cores: host.cores ?? 0, threads: host.threads ?? 0 },
    ...{ nodes: host.numaNodes?.length ?? 0, memoryMib: bytes / 1024 ** 2 },
  };
}

/** hwloc writes its findings as XML or as lines. The lines round sizes to the unit that they name. */
function readExpected(path: string): Counts {
  const isXml = path.endsWith(".xml");
  // The tree of objects is followed by sums and attributes, which name the objects again.
  const [text = ""] = readFileSync(path, "utf8").split(/^depth /m);
  const count = (kind: string) =>
    text.match(new RegExp(isXml ? `<object type="${kind}"` : `^ *${kind}(\\([^)]*\\))? L#`, "gm"))?.length ?? 0;
  const sizes = isXml
    ? [...text.matchAll(/type="NUMANode"[^>]* local_memory="(\d+)"/g)].map(([, bytes]) => Number(bytes) / 1024 ** 2)
    : [...text.matchAll(/NUMANode(?:\([^)]*\))? L#\d+ \(.*?local=(\d+)([KMGT])iB/g)].map(
        ([, amount, unit = ""]) => Number(amount) * 1024 ** ("KMGT".indexOf(unit) - 1),
      );
  return {
    ...{ packages: count("Package"), cores: count("Core"), threads: count("PU"), nodes: count("NUMANode") },
    memoryMib: sizes.reduce((sum, size) => sum + size, 0),
  };
}

/** Sizes may differ by the rounding of the lines: less than a hundredth, where hwloc changes to the next unit. */
function differing(ours: Counts, theirs: Counts): readonly (keyof Counts)[] {
  const keys = ["packages", "cores", "threads", "nodes"] as const;
  const isMemoryEqual = Math.abs(ours.memoryMib - theirs.memoryMib) <= 0.01 * theirs.memoryMib + 1;
  return [...keys.filter((key) => ours[key] !== theirs[key]), ...(isMemoryEqual ? [] : (["memoryMib"] as const))];
}

describe.skipIf(!isThere)("hwloc's trees of Linux machines (in the directory that BERTH_HWLOC_TREES names)", () => {
  const trees = isThere ? listTrees() : [];

  test("exist", () => {
    expect(trees.length).toBeGreaterThan(40);
  });

  test.each(trees)(
    "$name has the counts of $expected",
    ({ name, expected }) => {
      const ours = countsOf(inspectTree(name));
      const theirs = readExpected(join(directory, expected));
      const known = DIFFERENCES[name.slice(0, -".tar.bz2".length)];
      expect(differing(ours, theirs), `${JSON.stringify({ ours, theirs })} ${known?.why ?? ""}`).toEqual(
        known?.counts ?? [],
      );
    },
    240_000,
  );
});
