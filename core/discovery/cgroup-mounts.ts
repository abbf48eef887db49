/** A mounted hierarchy of control groups that may have the controller `cpuset`. */
export interface CgroupMount {
  /** Version 1 gives each group its own sets; in version 2 a group has them only if the controller is enabled for it. */
  readonly kind: "cpuset" | "cgroup2";
  /** The group that is mounted: `/`, or a container's. */
  readonly root: string;
  readonly directory: string;
  /** The names of the files with the sets that are in effect. */
  readonly files: { readonly cpus: string; readonly mems: string };
}

/**
 * The mounts that can have the sets of CPUs and memory, from /proc/self/mountinfo, or from /proc/mounts, which does not say which group is
 * mounted.
 */
export function cgroupMounts(mountInfo: string | undefined, mounts: string | undefined): readonly CgroupMount[] {
  return mountInfo === undefined
    ? linesOf(mounts).flatMap(([, directory = "", type = "", options = ""]) =>
        mountOf(type, options.split(","), { root: "/", directory }),
      )
    : linesOf(mountInfo).flatMap((fields) => {
        const [, , , root = "", directory = ""] = fields;
        // The number of optional fields before the dash differs.
        const [type = "", , options = ""] = fields.slice(fields.indexOf("-", 6) + 1);
        return mountOf(type, options.split(","), { root, directory });
      });
}

function linesOf(text: string | undefined): readonly (readonly string[])[] {
  return (text ?? "").split("\n").map((line) => line.split(" ").map(unescaped));
}

function mountOf(
  type: string,
  options: readonly string[],
  place: Pick<CgroupMount, "root" | "directory">,
): readonly CgroupMount[] {
  if (!place.directory.startsWith("/")) return [];
  const named = (cpus: string, mems: string) => ({ cpus, mems });
  switch (type) {
    case "cgroup2":
      return [{ ...place, kind: "cgroup2", files: named("cpuset.cpus.effective", "cpuset.mems.effective") }];
    case "cpuset":
      return [{ ...place, kind: "cpuset", files: named("cpus", "mems") }];
    case "cgroup": {
      if (!options.includes("cpuset")) return [];
      const prefix = options.includes("noprefix") ? "" : "cpuset.";
      // The sets of version 1 are those in effect, unless they are told to behave as in version 2.
      const effective = options.includes("cpuset_v2_mode") ? "effective_" : "";
      return [{ ...place, kind: "cpuset", files: named(`${prefix}${effective}cpus`, `${prefix}${effective}mems`) }];
    }
    default:
      return [];
  }
}

/** The kernel writes spaces, tabs, line ends and backslashes as octal numbers. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
