import { type CgroupMount, cgroupMounts } from "./cgroup-mounts.ts";
import type { HostFiles, Warn } from "./host-files.ts";
import { parseNumberList, parseWord } from "./parse-values.ts";

/** What a process may use by its control group, and with it every process that it starts. Null means unknown. */
export interface ControlGroup {
  /** The path in the hierarchy that has the controller `cpuset`. */
  readonly path: string | null;
  readonly cpus: readonly number[] | null;
  /** The NUMA nodes whose memory is allowed. */
  readonly memoryNodes: readonly number[] | null;
}

export const UNKNOWN_GROUP: ControlGroup = { path: null, cpus: null, memoryNodes: null };

/** Files that tell the group of the process which reads them, and where the groups' own files are. */
export const GROUP_FILES = {
  cpuset: "/proc/self/cpuset",
  cgroup: "/proc/self/cgroup",
  mountInfo: "/proc/self/mountinfo",
  mounts: "/proc/mounts",
} as const;

/** The kernel has no limit. Groups of service managers and containers are a dozen levels deep at most. */
const LEVELS_MAX = 64;

/** Where the group's files can be. If the controller is not enabled for the group, the files and limits of the nearest group above it count for which it is. */
interface GroupPlace {
  readonly path: string;
  readonly mount: CgroupMount;
  /** Directories from the group's own upwards. One, where each group has the files. */
  readonly directories: readonly string[];
}

/**
 * The files that say what the group of the process allows, as far as the host's other files name them. They may not all exist: a group of
 * version 2 has them only if the controller is enabled for it.
 */
export function controlGroupFiles(texts: HostFiles["texts"]): readonly string[] {
  return placesOf(texts).flatMap(({ mount, directories }) =>
    directories.flatMap((directory) => [`${directory}/${mount.files.cpus}`, `${directory}/${mount.files.mems}`]),
  );
}

/**
 * Reads what the control group of the process allows. What cannot be read is what was known before, with a warning. A group that allows nothing
 * could not have a process, so an empty set counts as unknown, too.
 */
export function discoverControlGroup(files: HostFiles, before: ControlGroup, warn: Warn): ControlGroup {
  const places = placesOf(files.texts);
  const found = places
    .map((place) => ({
      path: place.path,
      cpus: setIn(files, place, place.mount.files.cpus),
      memoryNodes: setIn(files, place, place.mount.files.mems),
    }))
    .find(({ cpus, memoryNodes }) => cpus !== null || memoryNodes !== null);
  const group = found ?? { ...UNKNOWN_GROUP, path: places[0]?.path ?? groupPath(files.texts, "cpuset") };
  for (const [what, now, old] of [
    ["the CPUs", group.cpus, before.cpus],
    ["the NUMA nodes", group.memoryNodes, before.memoryNodes],
  ] as const) {
    if (now !== null) continue;
    warn(
      old === null
        ? `${what} that the control group ${group.path ?? "of the process"} allows are unknown, since its files cannot be read: all count as allowed`
        : `${what} that the control group ${group.path ?? "of the process"} allows could not be read this time: the last known ones are kept`,
    );
  }
  return {
    path: group.path,
    cpus: group.cpus ?? before.cpus,
    memoryNodes: group.memoryNodes ?? before.memoryNodes,
  };
}

function placesOf(texts: HostFiles["texts"]): readonly GroupPlace[] {
  return cgroupMounts(texts.get(GROUP_FILES.mountInfo), texts.get(GROUP_FILES.mounts)).flatMap((mount) => {
    const path = groupPath(texts, mount.kind);
    const below = path === null ? null : pathBelow(mount.root, path);
    if (path === null || below === null) return [];
    const names = below.split("/").filter((name) => name !== "");
    if (names.includes("..") || names.length > LEVELS_MAX) return [];
    const levels = mount.kind === "cgroup2" ? names.length + 1 : 1;
    const directories = Array.from({ length: levels }, (_, level) =>
      [mount.directory, ...names.slice(0, names.length - level)].join("/").replace(/^\/\//, "/"),
    );
    return [{ path, mount, directories }];
  });
}

/** The path of the process's group, as the kernel names it in a hierarchy. A kernel without the list of groups may still have the file of the controller. */
function groupPath(texts: HostFiles["texts"], kind: CgroupMount["kind"]): string | null {
  const lines = texts.get(GROUP_FILES.cgroup)?.split("\n") ?? [];
  for (const line of lines) {
    const [, hierarchy, controllers = "", path] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    if (kind === "cgroup2" ? hierarchy === "0" && controllers === "" : controllers.split(",").includes("cpuset"))
      return path;
  }
  const path = parseWord(texts.get(GROUP_FILES.cpuset));
  return path?.startsWith("/") ? path : null;
}

/** The part of a group's path below the group that is mounted, or null for a group that cannot be reached through the mount. */
function pathBelow(root: string, path: string): string | null {
  if (root === "/" || path === root) return path === root ? "" : path;
  return path.startsWith(`${root}/`) ? path.slice(root.length) : null;
}

function setIn({ texts, unread }: HostFiles, { directories }: GroupPlace, name: string): readonly number[] | null {
  for (const directory of directories) {
    const path = `${directory}/${name}`;
    const set = parseNumberList(texts.get(path));
    if (set !== null) return set.length === 0 ? null : set;
    // The groups above may allow more than this one, whose file exists.
    if (texts.has(path) || unread.some((one) => one.path === path)) return null;
  }
  return null;
}
