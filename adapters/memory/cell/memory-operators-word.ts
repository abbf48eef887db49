import type { ProviderUuid, ResourceClass } from "../../../core/ledger/ids.ts";
import { underOperatorsWord } from "../../../core/ledger/operators-word.ts";
import type { ProviderTree } from "../../../core/ledger/provider-tree.ts";

const NO_RATIOS: ReadonlyMap<ResourceClass, number> = new Map();

/** The operators' settings for the trees of a memory ledger, and the values that agents had reported where a setting overrides them. */
export class MemoryOperatorsWord {
  readonly #disabled = new Set<ProviderUuid>();
  readonly #ratios = new Map<ProviderUuid, ReadonlyMap<ResourceClass, number>>();
  readonly #reported = new Map<string, number>();

  /** Returns a function that restores the settings as they are now. */
  remember(): () => void {
    const tables = [this.#disabled, this.#ratios, this.#reported] as const;
    const [disabled, ratios, reported] = [new Set(tables[0]), new Map(tables[1]), new Map(tables[2])];
    return () => {
      for (const table of tables) table.clear();
      for (const root of disabled) this.#disabled.add(root);
      for (const [root, said] of ratios) this.#ratios.set(root, said);
      for (const [key, ratio] of reported) this.#reported.set(key, ratio);
    };
  }

  /** Forgets all settings for a tree that is gone. */
  forget(root: ProviderUuid): void {
    this.#disabled.delete(root);
    this.#ratios.delete(root);
  }

  setDisabled(root: ProviderUuid, disabled: boolean): void {
    if (disabled) this.#disabled.add(root);
    else this.#disabled.delete(root);
  }

  setRatios(root: ProviderUuid, ratios: ReadonlyMap<ResourceClass, number>): void {
    this.#ratios.set(root, ratios);
  }

  ratiosOf(root: ProviderUuid): ReadonlyMap<ResourceClass, number> {
    return this.#ratios.get(root) ?? NO_RATIOS;
  }

  reportedRatio(provider: ProviderUuid, key: ResourceClass): number | null {
    return this.#reported.get(`${provider}/${key}`) ?? null;
  }

  noteReported(provider: ProviderUuid, key: ResourceClass, ratio: number | null): void {
    if (ratio === null) this.#reported.delete(`${provider}/${key}`);
    else this.#reported.set(`${provider}/${key}`, ratio);
  }

  /** The reported tree with the operators' settings applied. Remembers the reported ratios that are overridden. */
  apply(tree: ProviderTree): ProviderTree {
    const ratios = this.ratiosOf(tree.root);
    const disabled = this.#disabled.has(tree.root);
    if (ratios.size === 0 && !disabled) return tree;
    for (const { uuid, inventories } of tree.providers) {
      for (const [key, { allocationRatio }] of inventories)
        if (ratios.has(key)) this.noteReported(uuid, key, allocationRatio);
    }
    return underOperatorsWord(tree, { disabled, ratios });
  }
}
