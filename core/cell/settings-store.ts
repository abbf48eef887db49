/** The section that holds the schedulers' settings (core/scheduling/scheduling-settings). */
export const SCHEDULING_SECTION = "scheduling";

/** What operators have set in one section: only what differs from the defaults, as it was typed. */
export interface StoredSettings {
  /** 0: never set. Rises with every write. */
  readonly version: number;
  readonly values: Readonly<Record<string, unknown>>;
}

export type WriteSettingsOutcome =
  | { readonly kind: "written"; readonly version: number }
  /** Somebody else wrote in the meantime; nothing was written. */
  | { readonly kind: "conflict"; readonly version: number };

/**
 * Settings that services read while they run, by named section. The store keeps what it is given: whoever writes has
 * checked it. Both bodies (Postgres, in-memory) pass test/contract/settings-store.
 */
export interface SettingsStore {
  read(section: string): Promise<StoredSettings>;
  /** Replaces the section if it is still at `expected`. */
  write(section: string, expected: number, values: Readonly<Record<string, unknown>>): Promise<WriteSettingsOutcome>;
}
