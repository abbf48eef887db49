import type { NewServerGroup } from "../core/stores/api/server-group-store.ts";

/** The project of callers when the api has no authentication. */
const PROJECT = "default";

const group = (
  number: number,
  policy: NewServerGroup["policy"],
  maxServerPerHost: number | null = null,
): NewServerGroup => ({
  uuid: `5e7e7000-0000-4000-8000-00000000000${number}`,
  name: `${policy}-${number}`,
  projectId: PROJECT,
  userId: PROJECT,
  policy,
  maxServerPerHost,
});

/** Server groups of every policy, several for the policies whose servers are moved between hosts. */
export const SIM_GROUPS: readonly NewServerGroup[] = [
  group(1, "anti-affinity"),
  group(2, "anti-affinity"),
  group(3, "anti-affinity", 2),
  group(4, "affinity"),
  group(5, "affinity"),
  group(6, "soft-anti-affinity"),
];
