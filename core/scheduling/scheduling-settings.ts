import { FILTER_NAMES, type FilterName } from "./filters/filter-names.ts";
import { DEFAULT_REQUEST_FILTER_SETTINGS, type RequestFilterSettings } from "./request/request-context.ts";
import {
  classesByName,
  integerFrom,
  listSetting,
  numberFrom,
  numbersByName,
  type SettingReader,
  textUpTo,
  yesOrNo,
} from "./setting-readers.ts";
import type { WeigherSettings } from "./weighers/weigher-settings.ts";
import { DEFAULT_MULTIPLIERS, WEIGHER_NAMES, type WeigherName } from "./weighers/weighers.ts";

/** Settings of the choice of hosts that operators change while schedulers run. Settings that Nova has, too, have Nova's meaning. */
export interface SchedulingSettings extends RequestFilterSettings, WeigherSettings {
  /** The enabled host filters in the order in which they are applied. */
  readonly enabledFilters: readonly FilterName[];
  /** How much each weigher counts. 0 turns it off, and a negative number reverses its preference. */
  readonly multipliers: Readonly<Record<WeigherName, number>>;
  /** Number of best hosts from which the chosen host is drawn at random. */
  readonly hostSubsetSize: number;
  /** How far, at most, the weight of such a host may lie below the best one's. */
  readonly hostSubsetTolerance: number;
  /** Whether hosts of equal weight are ordered differently for each request. Otherwise their order never changes. */
  readonly shuffleBestSameWeighedHosts: boolean;
  readonly maxIoOpsPerHost: number;
  readonly maxInstancesPerHost: number;
  readonly isolatedImages: readonly string[];
  readonly isolatedHosts: readonly string[];
  /** Keeps servers of other images off the isolated hosts. */
  readonly restrictIsolatedHostsToIsolatedImages: boolean;
  /** Architecture of images that name none, or "" for any. */
  readonly imagePropertiesDefaultArchitecture: string;
  /** Only aggregate metadata that begins with this namespace and the separator is compared with images; "" compares all. */
  readonly aggregateImagePropertiesIsolationNamespace: string;
  readonly aggregateImagePropertiesIsolationSeparator: string;
}

/** Settings in their stored form, as operators enter them: those that differ from the defaults, by option name (`host_subset_size`). */
export type StoredSchedulingSettings = Readonly<Record<string, unknown>>;

/** Why a value of an option is not valid. */
export interface SettingRefusal {
  readonly option: string;
  readonly value: unknown;
  /** The permitted values, or null when there is no such option. */
  readonly allowed: string | null;
}

export type SchedulingSettingsOutcome =
  | { readonly kind: "settings"; readonly settings: SchedulingSettings }
  /** Lists every invalid option. */
  | { readonly kind: "refused"; readonly refusals: readonly SettingRefusal[] };

type Field = Exclude<keyof SchedulingSettings, "multipliers">;

const multiplierReader = numberFrom(-1e9, 1e9);
const count = integerFrom(0, 1_000_000);

const READERS: { readonly [Name in Field]: SettingReader<SchedulingSettings[Name]> } = {
  enabledFilters: listSetting(FILTER_NAMES.length, FILTER_NAMES),
  hostSubsetSize: integerFrom(1, 1_000),
  hostSubsetTolerance: numberFrom(0, 1e9),
  shuffleBestSameWeighedHosts: yesOrNo,
  defaultAvailabilityZone: {
    allowed: "a name of 1 to 255 characters without a colon",
    read: (given) => (typeof given === "string" && /^[^:]{1,255}$/.test(given.trim()) ? given.trim() : undefined),
  },
  limitTenantsToPlacementAggregate: yesOrNo,
  placementAggregateRequiredForTenants: yesOrNo,
  enableIsolatedAggregateFiltering: yesOrNo,
  queryPlacementForImageTypeSupport: yesOrNo,
  imageMetadataPrefilter: yesOrNo,
  maxIoOpsPerHost: count,
  maxInstancesPerHost: count,
  isolatedImages: listSetting(1_000),
  isolatedHosts: listSetting(10_000),
  restrictIsolatedHostsToIsolatedImages: yesOrNo,
  imagePropertiesDefaultArchitecture: textUpTo(64),
  aggregateImagePropertiesIsolationNamespace: textUpTo(255),
  aggregateImagePropertiesIsolationSeparator: textUpTo(16),
  metricsWeightSetting: numbersByName(100),
  metricsRequired: yesOrNo,
  metricsWeightOfUnavailable: numberFrom(-1e12, 1e12),
  imagePropsWeightSetting: numbersByName(100),
  pciAliases: classesByName(100),
  bestFitClasses: listSetting(100),
};

/** Nova's defaults, except where they would make the schedulers of a cloud with many of them collide (the subset). */
export const DEFAULT_SCHEDULING_SETTINGS: SchedulingSettings = {
  enabledFilters: [
    "ComputeFilter",
    "AvailabilityZoneFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "DifferentHostFilter",
    "SameHostFilter",
    "NUMATopologyFilter",
    "PciPassthroughFilter",
  ],
  multipliers: DEFAULT_MULTIPLIERS,
  hostSubsetSize: 5,
  hostSubsetTolerance: 0.05,
  shuffleBestSameWeighedHosts: true,
  ...DEFAULT_REQUEST_FILTER_SETTINGS,
  maxIoOpsPerHost: 8,
  maxInstancesPerHost: 50,
  isolatedImages: [],
  isolatedHosts: [],
  restrictIsolatedHostsToIsolatedImages: true,
  imagePropertiesDefaultArchitecture: "",
  aggregateImagePropertiesIsolationNamespace: "",
  aggregateImagePropertiesIsolationSeparator: ".",
  metricsWeightSetting: {},
  metricsRequired: true,
  metricsWeightOfUnavailable: -10_000,
  imagePropsWeightSetting: {},
  pciAliases: {},
  bestFitClasses: [],
};

const FIELDS_BY_OPTION: ReadonlyMap<string, Field> = new Map(
  (Object.keys(READERS) as Field[]).map((field) => [optionOf(field), field]),
);
const WEIGHERS_BY_OPTION: ReadonlyMap<string, WeigherName> = new Map(
  WEIGHER_NAMES.map((name) => [multiplierOption(name), name]),
);

/** Every option's name, for help and completion. */
export const SCHEDULING_OPTIONS: readonly string[] = [...FIELDS_BY_OPTION.keys(), ...WEIGHERS_BY_OPTION.keys()];

/** The name of the setting, and of the aggregate metadata, that holds a weigher's multiplier. */
export function multiplierOption(name: WeigherName): string {
  return `${name}_weight_multiplier`;
}

/** The defaults overridden by the stored values. It refuses unknown options and invalid values, all at once. */
export function readSchedulingSettings(stored: StoredSchedulingSettings): SchedulingSettingsOutcome {
  const refusals: SettingRefusal[] = [];
  const fields: Record<string, unknown> = {};
  const multipliers: Record<WeigherName, number> = { ...DEFAULT_SCHEDULING_SETTINGS.multipliers };
  for (const [option, value] of Object.entries(stored)) {
    const field = FIELDS_BY_OPTION.get(option);
    const weigher = WEIGHERS_BY_OPTION.get(option);
    const reader: SettingReader<unknown> | undefined = field ? READERS[field] : weigher && multiplierReader;
    const read = reader?.read(value);
    if (read === undefined) refusals.push({ option, value, allowed: reader?.allowed ?? null });
    else if (field) fields[field] = read;
    else if (weigher) multipliers[weigher] = multiplierReader.read(value) ?? multipliers[weigher];
  }
  if (refusals.length > 0) return { kind: "refused", refusals };
  return { kind: "settings", settings: { ...DEFAULT_SCHEDULING_SETTINGS, ...fields, multipliers } };
}

/** All options with their values, in the form that `readSchedulingSettings` takes. */
export function writeSchedulingSettings(settings: SchedulingSettings): Record<string, unknown> {
  const written: Record<string, unknown> = {};
  for (const [option, field] of FIELDS_BY_OPTION) written[option] = settings[field];
  for (const [option, name] of WEIGHERS_BY_OPTION) written[option] = settings.multipliers[name];
  return written;
}

/** A line for the operator with the option, the value, and what is allowed. */
export function describeSettingRefusal({ option, value, allowed }: SettingRefusal): string {
  if (allowed === null) return `There is no option ${option}; there are ${SCHEDULING_OPTIONS.join(", ")}.`;
  return `${option} cannot be ${JSON.stringify(value)}: it is ${allowed}.`;
}

function optionOf(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
