import { multiplierOption, type SchedulingSettings } from "../scheduling-settings.ts";
import type { WeighedBy } from "./weigher.ts";
import { type OwnWeighers, WEIGHER_NAMES, WEIGHERS } from "./weighers.ts";

/** All weighers, made from the settings. The same settings give the same list object. For moves, see cross-cell-move.ts. */
export class WeigherSet {
  readonly #own: OwnWeighers;
  readonly #made = new WeakMap<SchedulingSettings, readonly WeighedBy[]>();

  constructor(own: OwnWeighers) {
    this.#own = own;
  }

  of(settings: SchedulingSettings): readonly WeighedBy[] {
    const known = this.#made.get(settings);
    if (known) return known;
    const weighers = WEIGHER_NAMES.flatMap((name) => {
      const weigher = WEIGHERS[name].make?.(settings, this.#own);
      return weigher ? { weigher, multiplier: settings.multipliers[name], option: multiplierOption(name) } : [];
    });
    this.#made.set(settings, weighers);
    return weighers;
  }
}
