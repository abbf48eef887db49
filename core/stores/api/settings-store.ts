/** The section that holds the schedulers' settings (core/scheduling/scheduling-settings). */
export const SCHEDULING_SECTION = "scheduling";

/** The settings of operators in one section. It contains only values that differ from the defaults, as they were typed. */
export interface StoredSettings {
  /** Rises with every write, and is 0 when the section was never set. */
  readonly version: number;
  readonly values: Readonly<Record<string, unknown>>;
}

export type WriteSettingsOutcome =
  | { readonly kind: "written"; readonly version: number }
  /** Another writer was faster, and nothing was written. */
  | { readonly kind: "conflict"; readonly version: number };

/**
 * Settings that services read while they run, by named section. The store does not check values, so the writer must. Both implementations
 * (Postgres, in-memory) pass test/contract/settings-store.
 */
export interface SettingsStore {
  read(section: string): Promise<StoredSettings>;
  /** Replaces the section if its version is still `expected`. */
  write(section: string, expected: number, values: Readonly<Record<string, unknown>>): Promise<WriteSettingsOutcome>;
}
