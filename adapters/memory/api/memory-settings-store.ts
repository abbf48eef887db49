import type { SettingsStore, StoredSettings, WriteSettingsOutcome } from "../../../core/stores/api/settings-store.ts";

const NEVER_SET: StoredSettings = { version: 0, values: {} };

/** The in-process twin of the table of settings. */
export class MemorySettingsStore implements SettingsStore {
  readonly #sections = new Map<string, StoredSettings>();

  async read(section: string): Promise<StoredSettings> {
    return this.#sections.get(section) ?? NEVER_SET;
  }

  async write(
    section: string,
    expected: number,
    values: Readonly<Record<string, unknown>>,
  ): Promise<WriteSettingsOutcome> {
    const { version } = this.#sections.get(section) ?? NEVER_SET;
    if (version !== expected) return { kind: "conflict", version };
    this.#sections.set(section, { version: version + 1, values: structuredClone(values) });
    return { kind: "written", version: version + 1 };
  }
}
