/** Settings that are missing or wrong. Each has one line, which names the setting and the allowed values. Exit code 2. */
export class SettingsError extends Error {
  readonly faults: readonly string[];

  /** `faults` is one line, or several. */
  constructor(faults: string | readonly string[]) {
    const all = typeof faults === "string" ? [faults] : faults;
    super(all.length === 1 ? all[0] : [`${all.length} errors:`, ...all.map((fault) => `  ${fault}`)].join("\n"));
    this.name = "SettingsError";
    this.faults = all;
  }
}

/** Throws a `SettingsError` with all of the faults, if there are any. */
export function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0) throw new SettingsError(faults);
}
