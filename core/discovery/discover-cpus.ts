import type { ControlGroup } from "./control-group.ts";
import { formatNumberList } from "./format-number-list.ts";
import { type HostFiles, numberedEntries, type Warn } from "./host-files.ts";
import { parseCount, parseNumberList, parseNumberMask, parseWord } from "./parse-values.ts";

const DIRECTORY = "/sys/devices/system/cpu";

/** CPUs of one kind in a machine that has several, for example performance and efficiency cores. */
export interface CoreKind {
  readonly kind: string;
  readonly cpus: readonly number[];
}

/** The processors as the kernel describes them, counted as far as guests can use them. Null means unknown. */
export interface CpuTopology {
  /** Packages with CPUs in `usable`, or with memory that guests can use. Those that contradict each other are left out. */
  readonly packages: number | null;
  readonly cores: number | null;
  /** The CPUs in `usable` of each core that has several of them, also those that may belong to one core according to files that contradict each other. Empty when that is unknown. */
  readonly siblings: readonly (readonly number[])[];
  /** The number of CPUs in `usable`, which are hardware threads, as the kernel numbers CPUs. */
  readonly threads: number | null;
  readonly online: readonly number[] | null;
  /** CPUs that are online and that the control group of the guests allows. */
  readonly usable: readonly number[] | null;
  /** CPUs that the machine has but that are switched off. */
  readonly offline: readonly number[] | null;
  /** CPUs that the kernel was told to keep its scheduler away from (isolcpus). */
  readonly isolated: readonly number[] | null;
  /** Empty when all cores are of one kind. */
  readonly coreKinds: readonly CoreKind[];
}

/** The part of the machine that guests can use. */
export interface CpuLimits {
  /** The control group's path and the CPUs that it allows. They are null when they are unknown. */
  readonly group: Pick<ControlGroup, "path" | "cpus">;
  /** CPUs of NUMA nodes whose memory guests can use. */
  readonly besideMemory: ReadonlySet<number>;
}

/**
 * Counts packages, cores and threads that are online and allowed. Packages and cores are recognised by the set of CPUs that share them, or by
 * their ids when the kernel offers no sets. An offline CPU has no topology, so it is not counted anywhere. A number of which nothing is left to count is unknown.
 */
export function discoverCpus(files: HostFiles, { group, besideMemory }: CpuLimits, warn: Warn): CpuTopology {
  const listed = numberedEntries(files, DIRECTORY, "cpu");
  const online = onlineCpus(files, listed, warn);
  if (online === null || online.length === 0) {
    warn(`CPUs are unknown: ${DIRECTORY} has no online CPU`);
    return {
      ...{ packages: null, cores: null, threads: null, online: null, usable: null, offline: null },
      ...{ isolated: null, coreKinds: [], siblings: [] },
    };
  }
  const usable = usableCpus(online, group, warn);
  const packages = groupsOf(files, online, warn, {
    what: "packages",
    sets: ["package_cpus", "core_siblings"],
    ids: ["physical_package_id"],
  });
  const cores = groupsOf(files, online, warn, {
    what: "cores",
    sets: ["core_cpus", "thread_siblings"],
    ids: ["physical_package_id", "core_id"],
    split: "core_id",
  });
  const isUsable = new Set(usable);
  const usableOf = (groups: readonly (readonly number[])[] = []) =>
    groups.map((cpus) => cpus.filter((cpu) => isUsable.has(cpu))).filter(({ length }) => length > 0);
  const isReached = (cpus: readonly number[]) => cpus.some((cpu) => isUsable.has(cpu) || besideMemory.has(cpu));
  return {
    packages: packages?.counted.filter(isReached).length || null,
    cores: usableOf(cores?.counted).length || null,
    siblings: usableOf(cores?.apart).filter(({ length }) => length > 1),
    threads: usable.length,
    ...{ online, usable },
    offline: offlineCpus(files, listed, online),
    isolated: isolatedCpus(files, warn),
    coreKinds: coreKinds(files, usable),
  };
}

/** Old kernels have no list. They mark a CPU as offline in its own file, or by leaving out its topology. */
function onlineCpus(files: HostFiles, listed: readonly number[] | null, warn: Warn): readonly number[] | null {
  const text = files.texts.get(`${DIRECTORY}/online`);
  const stated = parseNumberList(text);
  if (text !== undefined && stated === null) warn(`${DIRECTORY}/online is not a list of CPUs and is ignored`);
  if (listed === null || listed.length === 0) return stated;
  const hasTopology = (cpu: number) => files.entries.has(`${DIRECTORY}/cpu${cpu}/topology`);
  const isTopologyKnown = listed.some(hasTopology);
  const stands = stated === null ? null : new Set(stated);
  return listed.filter((cpu) => {
    if (files.texts.get(`${DIRECTORY}/cpu${cpu}/online`)?.trim() === "0") return false;
    if (stands !== null && !stands.has(cpu)) return false;
    return !isTopologyKnown || hasTopology(cpu);
  });
}

/** The CPUs for guests. A group that allows no CPU of the machine is that of another one, and is left out of account. */
function usableCpus(online: readonly number[], { path, cpus }: CpuLimits["group"], warn: Warn): readonly number[] {
  const usable = cpus === null ? online : online.filter((cpu) => cpus.includes(cpu));
  const { length } = usable;
  if (length === online.length) return online;
  if (length > 0)
    warn(
      `the control group ${path} allows only the CPUs ${formatNumberList(usable)} of those that are online, ${formatNumberList(online)}: the others are left out, since guests are started in this group`,
    );
  else
    warn(
      `the control group ${path} allows none of the CPUs that are online, which cannot be: it is left out of account`,
    );
  return length > 0 ? usable : online;
}

function offlineCpus(
  files: HostFiles,
  listed: readonly number[] | null,
  online: readonly number[],
): readonly number[] | null {
  const present = parseNumberList(files.texts.get(`${DIRECTORY}/present`)) ?? listed;
  return present?.filter((cpu) => !online.includes(cpu)) ?? null;
}

function isolatedCpus(files: HostFiles, warn: Warn): readonly number[] | null {
  const isolated = parseNumberList(files.texts.get(`${DIRECTORY}/isolated`));
  if (isolated === null) warn(`isolated CPUs are unknown: ${DIRECTORY}/isolated is missing or is not a list of CPUs`);
  return isolated;
}

interface Grouping {
  readonly what: string;
  /** Files that hold the set of CPUs as a mask, with the newest name first. Each may also be there as a list, with the suffix `_list`. */
  readonly sets: readonly string[];
  readonly ids: readonly string[];
  /**
   * The file of an id. A set is divided where its CPUs have different values of this id. Modules of AMD's family 15h are such sets, with two
   * cores each.
   */
  readonly split?: string;
}

/** The groups of the CPUs: `counted` are those that are certain. Of `apart`, no two share anything, whichever of the files that contradict each other is right. */
type Groups = Readonly<Record<"counted" | "apart", readonly (readonly number[])[]>>;

function groupsOf(
  files: HostFiles,
  online: readonly number[],
  warn: Warn,
  { what, sets, ids, split }: Grouping,
): Groups | null {
  const isOnline = new Set(online);
  const groups = new Map<string, number[]>();
  /** The set that each CPU names. */
  const named = new Map<number, string>();
  const parts = new Map<number, number | null>();
  for (const cpu of online) {
    const topology = `${DIRECTORY}/cpu${cpu}/topology`;
    const set = setKey(files, topology, { sets, cpu, isOnline });
    if (set !== null) named.set(cpu, set);
    const part = split === undefined ? null : parseCount(files.texts.get(`${topology}/${split}`));
    parts.set(cpu, part);
    const key = set === null ? idKey(files, topology, ids) : `set ${set} ${part}`;
    if (key === null) {
      warn(`${what} are unknown: ${topology} has neither ${sets.join(" nor ")} nor ${ids.join(" and ")}`);
      return null;
    }
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [cpu]);
    else group.push(cpu);
  }
  return withoutContradictions([...groups.values()], { what, named, parts, warn });
}

/**
 * Does not count the groups whose set also names CPUs that name another set, because it is unknown where such CPUs belong. `lstopo` does not count
 * them either. The CPUs themselves are counted. CPUs of one part that one of the sets joins may share their core, so they are one group of those that are `apart`.
 */
function withoutContradictions(
  groups: readonly (readonly number[])[],
  {
    what,
    named,
    parts,
    warn,
  }: {
    readonly what: string;
    readonly named: ReadonlyMap<number, string>;
    readonly parts: ReadonlyMap<number, number | null>;
    readonly warn: Warn;
  },
): Groups {
  const unclear = groups.filter(([first = 0]) => {
    const set = named.get(first);
    return set?.split(",").some((other) => (named.get(Number(other)) ?? set) !== set) ?? false;
  });
  if (unclear.length === 0) return { counted: groups, apart: groups };
  warn(
    `${what} of the CPUs ${formatNumberList(unclear.flat().toSorted((a, b) => a - b))} are left out: the sets that these CPUs name contradict each other`,
  );
  const reached = unclear.map(([first = 0]) =>
    (named.get(first) ?? "")
      .split(",")
      .map(Number)
      .filter((cpu) => parts.get(cpu) === parts.get(first)),
  );
  return { counted: groups.filter((cpus) => !unclear.includes(cpus)), apart: joined([...groups, ...reached]) };
}

/** The groups, of which those that have a CPU in common are one. */
function joined(groups: readonly (readonly number[])[]): readonly (readonly number[])[] {
  return groups.reduce<readonly (readonly number[])[]>((all, group) => {
    const meets = (other: readonly number[]) => other.some((cpu) => group.includes(cpu));
    const one = [...new Set([...all.filter(meets).flat(), ...group])].sort((a, b) => a - b);
    return [...all.filter((other) => !meets(other)), one];
  }, []);
}

function setKey(
  files: HostFiles,
  topology: string,
  among: { readonly sets: readonly string[]; readonly cpu: number; readonly isOnline: ReadonlySet<number> },
): string | null {
  for (const name of among.sets) {
    const set =
      parseNumberMask(files.texts.get(`${topology}/${name}`)) ??
      parseNumberList(files.texts.get(`${topology}/${name}_list`));
    // A set that does not contain its own CPU is ignored; some kernels leave the set empty.
    if (set?.includes(among.cpu)) return set.filter((cpu) => among.isOnline.has(cpu)).join(",");
  }
  return null;
}

/** Some kernels write -1 for an id that they do not know. */
function idKey(files: HostFiles, topology: string, names: readonly string[]): string | null {
  const ids = names.map((name) => parseCount(files.texts.get(`${topology}/${name}`)));
  return ids.includes(null) ? null : `id ${ids.join(":")}`;
}

/** The CPUs of each kind of core. Kernels on Intel list them; on ARM the kinds are recognised by their capacity. */
function coreKinds(files: HostFiles, usable: readonly number[]): readonly CoreKind[] {
  const listed = ["core", "lowpower", "atom"].flatMap((name) => {
    const cpus = parseNumberList(files.texts.get(`/sys/devices/cpu_${name}/cpus`))?.filter((cpu) =>
      usable.includes(cpu),
    );
    return cpus === undefined || cpus.length === 0 ? [] : [{ kind: name, cpus }];
  });
  if (listed.length > 1) return listed;
  const byCapacity = new Map<string, number[]>();
  for (const cpu of usable) {
    const capacity = parseWord(files.texts.get(`${DIRECTORY}/cpu${cpu}/cpu_capacity`));
    if (capacity === null) return [];
    byCapacity.set(capacity, [...(byCapacity.get(capacity) ?? []), cpu]);
  }
  if (byCapacity.size < 2) return [];
  return [...byCapacity].map(([capacity, cpus]) => ({ kind: `capacity ${capacity}`, cpus }));
}
