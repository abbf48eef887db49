import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** The resources with a quota, by Nova's names and in Nova's order. */
export const QUOTA_RESOURCES = [
  "cores",
  "injected_files",
  "injected_file_content_bytes",
  "injected_file_path_bytes",
  "instances",
  "key_pairs",
  "metadata_items",
  "ram",
  "server_groups",
  "server_group_members",
  "fixed_ips",
  "floating_ips",
  "security_groups",
  "security_group_rules",
] as const;
export type QuotaResource = (typeof QUOTA_RESOURCES)[number];

/** A limit for each resource: the largest allowed amount, or -1 for no limit. `ram` is in MiB. */
export type QuotaLimits = Readonly<Record<QuotaResource, number>>;

/** The limits that operators have set for a project. Resources that are not in a record have the limit of the next record. */
export interface SetLimits {
  /** The limits of the quota class `default`, which replace the defaults of this installation. */
  readonly byDefault: Partial<QuotaLimits>;
  readonly ofProject: Partial<QuotaLimits>;
  /** The limits of single users of the project. They apply in addition to the limits of the project. */
  readonly ofUsers: ReadonlyMap<string, Partial<QuotaLimits>>;
  /** The project's limits of resource classes. Only another service states them. */
  readonly ofClasses?: ClassAmounts;
}

export const NO_SET_LIMITS: SetLimits = { byDefault: {}, ofProject: {}, ofUsers: new Map() };

/** The resources that are counted as servers come and go, in the order in which Nova names them in refusals. */
export const SERVER_RESOURCES = ["cores", "instances", "ram"] as const;
export type ServerResource = (typeof SERVER_RESOURCES)[number];

/** Amounts by resource class, such as DISK_GB, PCPU, VGPU or a custom one. */
export type ClassAmounts = ReadonlyMap<string, number>;

export interface ServerAmounts extends Readonly<Record<ServerResource, number>> {
  /** The same by resource class. It is left out where only the three resources above are counted. */
  readonly classes?: ClassAmounts;
}

/** Limits that another service states, which may also be of resource classes. */
export interface StatedLimits extends QuotaLimits {
  readonly classes?: ClassAmounts;
}

export const NO_SERVERS: ServerAmounts = { cores: 0, instances: 0, ram: 0 };

/** The amounts used by the servers of a project, and by those of each of its users. */
export interface ServerUsage {
  readonly ofProject: ServerAmounts;
  readonly ofUsers: ReadonlyMap<string, ServerAmounts>;
}

export const NO_USAGE: ServerUsage = { ofProject: NO_SERVERS, ofUsers: new Map() };

/** Why a call is over its quota, in the figures of one scope: the project's, or the user's within it. */
export interface QuotaExcess {
  readonly overs: readonly ServerResource[];
  readonly limits: ServerAmounts;
  readonly used: ServerAmounts;
  /** The limits of resource classes that the call exceeds. */
  readonly classes: readonly ClassExcess[];
  /** How many servers of this size would fit. */
  readonly fitting: number;
}

/** A limit of a resource class that a call exceeds. */
export interface ClassExcess {
  readonly name: string;
  readonly limit: number;
  readonly used: number;
}

/** Limits that another service states: operators have set no others here. */
export function onlyLimits({ classes, ...stated }: StatedLimits): SetLimits {
  return { ...NO_SET_LIMITS, ofProject: stated, ...(classes !== undefined && { ofClasses: classes }) };
}

/** Returns the limits of a project: its own, then those of the default class, then `defaults`. */
export function limitsOfProject(set: SetLimits, defaults: QuotaLimits): QuotaLimits {
  return { ...defaults, ...set.byDefault, ...set.ofProject };
}

/** Returns the limits of a user in a project. Limits that were not set for the user are the project's. */
export function limitsOfUser(set: SetLimits, defaults: QuotaLimits, userId: string): QuotaLimits {
  return { ...limitsOfProject(set, defaults), ...set.ofUsers.get(userId) };
}

/** Returns the amounts of a server: one instance, and the VCPUs and memory of its flavor. */
export function amountsOf(flavor: ServerSpec["flavor"]): ServerAmounts {
  return { cores: flavor?.vcpus ?? 0, instances: 1, ram: flavor?.memoryMib ?? 0 };
}

export function sumOf(some: ServerAmounts, others: ServerAmounts, times = 1): ServerAmounts {
  return {
    cores: some.cores + times * others.cores,
    instances: some.instances + times * others.instances,
    ram: some.ram + times * others.ram,
    ...sumOfClasses(some.classes, others.classes, times),
  };
}

/** Amounts whose classes are not counted leave those of the other summand as they are. */
function sumOfClasses(some: ClassAmounts | undefined, others: ClassAmounts | undefined, times: number) {
  if (some === undefined && others === undefined) return {};
  const classes = new Map(some);
  for (const [name, amount] of others ?? []) classes.set(name, (classes.get(name) ?? 0) + times * amount);
  return { classes };
}

/** Returns what changes when a server gets other amounts. Its classes change only if both amounts have them. */
export function amountsChange(from: ServerAmounts, to: ServerAmounts): ServerAmounts {
  const { cores, ram, classes } = sumOf(to, from, -1);
  const areCounted = from.classes !== undefined && to.classes !== undefined && classes !== undefined;
  return { instances: 0, cores, ram, ...(areCounted && { classes }) };
}

/** Returns only what grows when a server gets other amounts. */
export function increaseOf(from: ServerAmounts, to: ServerAmounts): ServerAmounts {
  const { cores, ram, classes } = amountsChange(from, to);
  const grown = classes && new Map([...classes].filter(([, amount]) => amount > 0));
  return { instances: 0, cores: Math.max(0, cores), ram: Math.max(0, ram), ...(grown && { classes: grown }) };
}
