/** Settings that are missing or bad: a line for each, which names it and says what is allowed. Exit code 2. */
export class SettingsError extends Error {
  readonly faults: readonly string[];

  /** `faults`: one or more, each a line. */
  constructor(faults: string | readonly string[]) {
    const all = typeof faults === "string" ? [faults] : faults;
    super(all.length === 1 ? all[0] : [`${all.length} errors:`, ...all.map((fault) => `  ${fault}`)].join("\n"));
    this.name = "SettingsError";
    this.faults = all;
  }
}

/** Throws a `SettingsError` with all of them, if there are any. */
export function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0) throw new SettingsError(faults);
}
