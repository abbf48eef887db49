import { execFileSync, spawnSync } from "node:child_process";
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

const LSTOPO = "lstopo-no-graphics";

/** The compared counts, as hwloc counts them. A kind of object that hwloc does not show counts as 0 there and is unknown here. */
interface Counts {
  readonly packages: number;
  readonly cores: number;
  readonly threads: number;
  readonly nodes: number;
  /** The sum over all nodes, in MiB. */
  readonly memoryMib: number;
}

/**
 * The tree whose expected output was made with a variable of hwloc's own tests, which lets nodes share CPUs. These are the counts of `lstopo` without
 * it: the test with `lstopo` itself checks them.
 */
const WITHOUT_TEST_VARIABLES: Readonly<Record<string, Partial<Counts>>> = {
  "fakeheterocpunuma.tar.bz2": { nodes: 4, memoryMib: 4_096 },
};

interface Tree {
  readonly name: string;
  readonly expected: string;
  /** Whether what the control group forbids is expected, too. */
  readonly isWhole: boolean;
  /** Whether a level is left out in which each object has one object of the next level: cores with one thread each. */
  readonly isMerged: boolean;
}

/**
 * Each tree with one expected output, if possible one without options, and those for which there is an output of everything that control groups
 * forbid once more.
 */
function listTrees(): readonly Tree[] {
  const plans = readdirSync(directory)
    .filter((name) => name.endsWith(".test"))
    .map((name) => {
      const text = readFileSync(join(directory, name), "utf8");
      const field = (key: string) => new RegExp(`^${key}:\\s*(.*)$`, "m").exec(text)?.[1]?.trim() ?? "";
      const options = field("options");
      const [isWhole, isMerged] = [options.includes("--disallowed"), options.includes("all:structure")];
      const rank = options === "" && field("env") === "" ? 0 : 1;
      return { name: field("source"), expected: field("target"), rank, isWhole, isMerged };
    })
    .filter((plan) => plan.name.endsWith(".tar.bz2"))
    .sort((a, b) => a.rank - b.rank);
  const usual = plans.filter((plan) => !plan.isWhole);
  const names = [...new Set(usual.map((plan) => plan.name))].sort();
  return [...names.map((name) => usual.find((plan) => plan.name === name)!), ...plans.filter((plan) => plan.isWhole)];
}

/** The directory of an unpacked tree. It is removed after the test. */
function unpack({ name }: Tree): string {
  const unpacked = mkdtempSync(join(tmpdir(), "berth-hwloc-"));
  onTestFinished(() => rmSync(unpacked, { recursive: true, force: true }));
  execFileSync("tar", ["xjf", join(directory, name), "-C", unpacked]);
  const [sysroot = ""] = readdirSync(unpacked);
  return join(unpacked, sysroot);
}

function inspectTree(sysroot: string, { isWhole }: Tree): InspectedHost {
  const files = readHostFiles({ sysroot, instancesPath: "/" });
  return inspectHost(files, { isGroupOfGuests: !isWhole });
}

function countsOf(host: InspectedHost): Counts {
  const bytes = host.numaNodes?.reduce((sum, node) => sum + (node.memoryBytes ?? 0), 0) ?? 0;
  return {
    ...{ packages: host.packages ?? 0, cores: host.cores ?? 0, threads: host.threads ?? 0 },
    ...{ nodes: host.numaNodes?.length ?? 0, memoryMib: bytes / 1024 ** 2 },
  };
}

/** hwloc writes its findings as XML or as lines. The lines round sizes to the unit that they name. */
function readExpected({ name, expected, isMerged }: Tree): Counts {
  const text = readFileSync(join(directory, expected), "utf8");
  return {
    ...countsIn(text, { isXml: expected.endsWith(".xml"), isMerged }),
    ...WITHOUT_TEST_VARIABLES[name],
  };
}

function countsIn(
  output: string,
  { isXml, isMerged }: { readonly isXml: boolean; readonly isMerged: boolean },
): Counts {
  // The tree of objects is followed by sums and attributes, which name the objects again.
  const [text = ""] = output.split(/^depth /m);
  const count = (kind: string) =>
    text.match(new RegExp(isXml ? `<object type="${kind}"` : `^ *${kind}(\\([^)]*\\))? L#`, "gm"))?.length ?? 0;
  const sizes = isXml
    ? [...text.matchAll(/type="NUMANode"[^>]* local_memory="(\d+)"/g)].map(([, bytes]) => Number(bytes) / 1024 ** 2)
    : [...text.matchAll(/NUMANode(?:\([^)]*\))? L#\d+ \(.*?local=(\d+)([KMGT])iB/g)].map(
        ([, amount, unit = ""]) => Number(amount) * 1024 ** ("KMGT".indexOf(unit) - 1),
      );
  return {
    ...{ packages: count("Package"), threads: count("PU"), nodes: count("NUMANode") },
    cores: isMerged && count("Core") === 0 ? count("PU") : count("Core"),
    memoryMib: sizes.reduce((sum, size) => sum + size, 0),
  };
}

/** Whether Debian's package `hwloc` or `hwloc-nox` is installed. */
function hasLstopo(): boolean {
  return isThere && spawnSync(LSTOPO, ["--version"]).status === 0;
}

function askLstopo(sysroot: string, { isWhole }: Tree): Counts {
  const options = ["--of", "xml", ...(isWhole ? ["--disallowed"] : [])];
  const env = {
    ...process.env,
    ...{ HWLOC_FSROOT: sysroot, HWLOC_COMPONENTS: "linux,stop", HWLOC_THISSYSTEM: "0", HWLOC_HIDE_ERRORS: "2" },
  };
  return countsIn(execFileSync(LSTOPO, options, { env, encoding: "utf8" }), { isXml: true, isMerged: false });
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
    (tree) => {
      const ours = countsOf(inspectTree(unpack(tree), tree));
      const theirs = readExpected(tree);
      expect(differing(ours, theirs), JSON.stringify({ ours, theirs })).toEqual([]);
    },
    240_000,
  );

  test.skipIf(!hasLstopo()).each(trees)(
    "$name has the counts of lstopo on this machine, after $expected",
    (tree) => {
      const sysroot = unpack(tree);
      const ours = countsOf(inspectTree(sysroot, tree));
      const theirs = askLstopo(sysroot, tree);
      expect(differing(ours, theirs), JSON.stringify({ ours, theirs })).toEqual([]);
    },
    240_000,
  );
});
