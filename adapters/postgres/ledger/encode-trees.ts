import { assert } from "../../../core/assert.ts";
import type { ProviderUuid } from "../../../core/ledger/ids.ts";
import type { ProviderSpec, ProviderTree, TreeOutcome } from "../../../core/ledger/provider-tree.ts";
import { Interned } from "../client/interned.ts";
import { arrayLiteral, compositeLiteral, textArrayLiteral } from "../client/literals.ts";
import { EXPECTED_ABSENT, EXPECTED_ANY } from "./encode-changes.ts";

/**
 * Encodes trees as the literal of one `ledger_tree_batch`, to be passed as a single text parameter:
 * `select * from ledger_put_trees($1::ledger_tree_batch)`. The trees must pass `malformedList`. Cost: linear.
 */
export function encodeTrees(trees: readonly ProviderTree[]): string {
  const encoder = new TreeEncoder();
  for (const tree of trees) encoder.add(tree);
  return encoder.literal();
}

/** One row of the result of `ledger_put_trees`. */
export interface PutTreesRow {
  readonly tree: number;
  readonly kind: TreeOutcome["kind"];
  readonly generations: readonly number[] | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** The outcome of a tree, from its row in the result of `ledger_put_trees`. */
export function decodeTreeOutcome(tree: ProviderTree, row: PutTreesRow): TreeOutcome {
  if (row.kind !== "replaced" && row.kind !== "unchanged") {
    assert(row.detail !== null, `${row.kind} without its detail`);
    // ledger_put_trees gives the fields of each refusal the names that TreeOutcome has.
    return { kind: row.kind, ...row.detail } as unknown as TreeOutcome;
  }
  const generations = new Map<ProviderUuid, number>();
  tree.providers.forEach(({ uuid }, index) => {
    const generation = row.generations?.[index];
    assert(generation !== undefined, "a tree was replaced without a generation for each provider");
    generations.set(uuid, generation);
  });
  return { kind: row.kind, generations };
}

type Numbers = number[];

/** Collects the parallel arrays. All indexes count from 1, as SQL's arrays do. */
class TreeEncoder {
  readonly #treeRoot: Numbers = [];
  readonly #provider = {
    tree: [] as Numbers,
    uuid: [] as string[],
    name: [] as string[],
    parent: [] as Numbers,
    expected: [] as Numbers,
    ownsAggregates: [] as string[],
  };
  readonly #classes = new Interned<string>();
  /** Eight parallel columns: provider, class, total, reserved, min, max, step, ratio. */
  readonly #inventory: readonly Numbers[] = Array.from({ length: 8 }, () => []);
  readonly #traits = new Interned<string>();
  readonly #traitProvider: Numbers = [];
  readonly #traitTrait: Numbers = [];
  readonly #aggregateProvider: Numbers = [];
  readonly #aggregateUuid: string[] = [];

  add(tree: ProviderTree): void {
    const indexes = new Map<ProviderUuid, number>();
    this.#treeRoot.push(this.#provider.uuid.length + 1);
    for (const spec of tree.providers) {
      this.#addProvider(spec, spec.parent === null ? 0 : (indexes.get(spec.parent) ?? 0));
      indexes.set(spec.uuid, this.#provider.uuid.length);
    }
  }

  #addProvider(spec: ProviderSpec, parent: number): void {
    const columns = this.#provider;
    columns.tree.push(this.#treeRoot.length);
    columns.uuid.push(spec.uuid);
    columns.name.push(spec.name);
    columns.parent.push(parent);
    columns.expected.push(
      spec.expected === "any" ? EXPECTED_ANY : spec.expected === null ? EXPECTED_ABSENT : spec.expected,
    );
    columns.ownsAggregates.push(spec.aggregates === undefined ? "f" : "t");
    const at = columns.uuid.length;
    for (const [resourceClass, inventory] of spec.inventories) {
      const { total, reserved, minUnit, maxUnit, stepSize, allocationRatio } = inventory;
      const row = [
        at,
        this.#classes.indexOf(resourceClass),
        total,
        reserved,
        minUnit,
        maxUnit,
        stepSize,
        allocationRatio,
      ];
      this.#inventory.forEach((column, index) => {
        column.push(row[index]!);
      });
    }
    for (const trait of spec.traits) {
      this.#traitProvider.push(at);
      this.#traitTrait.push(this.#traits.indexOf(trait));
    }
    for (const aggregate of spec.aggregates ?? []) {
      this.#aggregateProvider.push(at);
      this.#aggregateUuid.push(aggregate);
    }
  }

  /** The fields in the order of the type `ledger_tree_batch`. */
  literal(): string {
    const { tree, uuid, name, parent, expected, ownsAggregates } = this.#provider;
    const [inventoryProvider, inventoryClass, ...inventoryValues] = this.#inventory as [Numbers, Numbers, ...Numbers[]];
    return compositeLiteral([
      arrayLiteral(this.#treeRoot),
      arrayLiteral(tree),
      arrayLiteral(uuid),
      textArrayLiteral(name),
      arrayLiteral(parent),
      arrayLiteral(expected),
      arrayLiteral(ownsAggregates),
      textArrayLiteral(this.#classes.values),
      arrayLiteral(inventoryProvider),
      arrayLiteral(inventoryClass),
      ...inventoryValues.map(arrayLiteral),
      textArrayLiteral(this.#traits.values),
      arrayLiteral(this.#traitProvider),
      arrayLiteral(this.#traitTrait),
      arrayLiteral(this.#aggregateProvider),
      arrayLiteral(this.#aggregateUuid),
    ]);
  }
}
