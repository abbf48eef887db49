import {
  DEFAULT_SCHEDULING_SETTINGS,
  describeSettingRefusal,
  readSchedulingSettings,
  type SchedulingSettings,
  writeSchedulingSettings,
} from "../../core/scheduling/scheduling-settings.ts";
import { SCHEDULING_SECTION, type SettingsStore } from "../../core/stores/api/settings-store.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { SchedulerEvents } from "./events.ts";

type SettingsEvents = Pick<SchedulerEvents, "settingsApplied" | "settingsRefused" | "refreshFailed">;

/**
 * The scheduling settings that operators have set, at most about a second old. `current` is an immutable object that is replaced after a
 * change, so a decision that reads it once is made under one version. `own` holds the settings that the process was started with; settings
 * of operators override it.
 *
 * Stored settings that cannot be read (written by a newer version of Berth) are reported once, and the old settings stay in force.
 */
export class LiveSettings {
  readonly #store: Pick<SettingsStore, "read">;
  readonly #events: SettingsEvents;
  readonly #ticker: Ticker;
  readonly #own: Readonly<Record<string, unknown>>;
  #current: SchedulingSettings;
  #version = 0;
  #refusedVersion = -1;

  constructor(
    deps: { readonly store: Pick<SettingsStore, "read">; readonly events: SettingsEvents; readonly clock: Clock },
    options: { readonly pollMs: number; readonly own?: SchedulingSettings },
  ) {
    this.#store = deps.store;
    this.#events = deps.events;
    this.#current = options.own ?? DEFAULT_SCHEDULING_SETTINGS;
    this.#own = writeSchedulingSettings(this.#current);
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.refresh(),
      onError: (error) => deps.events.refreshFailed("settings", error),
    });
  }

  get current(): SchedulingSettings {
    return this.#current;
  }

  /** The version of `current`, or 0 when no operator has set anything. */
  get version(): number {
    return this.#version;
  }

  /** Reads the settings once, then regularly. Begins with the defaults while the database is unreachable. */
  async start(): Promise<void> {
    await this.refresh();
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Never rejects: the settings stay unchanged while the database is unreachable. */
  async refresh(): Promise<void> {
    try {
      const { version, values } = await this.#store.read(SCHEDULING_SECTION);
      if (version === this.#version || version === this.#refusedVersion) return;
      const outcome = readSchedulingSettings({ ...this.#own, ...values });
      if (outcome.kind === "refused") {
        this.#refusedVersion = version;
        this.#events.settingsRefused(version, outcome.refusals.map(describeSettingRefusal));
        return;
      }
      this.#current = outcome.settings;
      this.#version = version;
      this.#events.settingsApplied(version);
    } catch (error) {
      this.#events.refreshFailed("settings", error);
    }
  }
}
