import { assert } from "../../../core/assert.ts";
import type {
  AllocationChange,
  AllocationOutcome,
  AllocationStep,
  ExpectedGeneration,
} from "../../../core/ledger/allocation-change.ts";
import type { ConsumerUuid } from "../../../core/ledger/ids.ts";
import type { AllocationItem, ConsumerOwner } from "../../../core/ledger/model.ts";
import { Interned } from "../client/interned.ts";
import { arrayLiteral, compositeLiteral, textArrayLiteral } from "../client/literals.ts";

/** The SQL types `ledger_batch` and `ledger_tree_batch` use these values for an expected generation that is not a number. */
export const EXPECTED_ANY = -1;
export const EXPECTED_ABSENT = -2;
/** A number that no generation can have. Clients may send any number. */
const EXPECTED_IMPOSSIBLE = -3;
const GENERATION_MAX = 2 ** 31 - 1;

function encodeExpected(expected: ExpectedGeneration): number {
  if (expected === "any") return EXPECTED_ANY;
  if (expected === null) return EXPECTED_ABSENT;
  return Number.isInteger(expected) && expected >= 0 && expected <= GENERATION_MAX ? expected : EXPECTED_IMPOSSIBLE;
}

/**
 * Encodes changes as the literal of one `ledger_batch`, to be passed as a single text parameter to an SQL function that takes one: `select
 * * from ledger_apply($1::ledger_batch)`. Changes take effect in their order. Asserts that amounts are positive integers and that no
 * (provider, class) occurs twice in a step. Cost: linear; each consumer, owner, provider and class is sent once.
 */
export function encodeChanges(changes: readonly AllocationChange[]): string {
  const encoder = new ChangeEncoder(changes);
  for (const change of changes) encoder.add(change);
  return encoder.literal();
}

/** One row of the result of `ledger_apply`. */
export interface LedgerApplyRow {
  readonly change: number;
  readonly kind: AllocationOutcome["kind"];
  readonly generations: readonly number[] | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** The outcome of a change, from its row in the result of `ledger_apply`. */
export function decodeOutcome(change: AllocationChange, row: Omit<LedgerApplyRow, "change">): AllocationOutcome {
  if (row.kind !== "committed") {
    assert(row.detail !== null, `${row.kind} without its detail`);
    // ledger_apply gives the fields of each refusal the names that AllocationOutcome has.
    const refusal = { kind: row.kind, ...row.detail } as unknown as AllocationOutcome;
    return refusal.kind === "consumer-conflict" && refusal.expected === EXPECTED_IMPOSSIBLE
      ? { ...refusal, expected: impossibleExpected(change, refusal.consumer) }
      : refusal;
  }
  const generations = new Map<ConsumerUuid, number>();
  let at = 0;
  for (const consumer of change.steps.flatMap(consumersOf)) {
    const generation = row.generations?.[at++];
    assert(generation !== undefined, "a committed change without a generation for each consumer");
    if (generation > 0) generations.set(consumer, generation);
  }
  return { kind: "committed", generations };
}

/** The number that was sent as `EXPECTED_IMPOSSIBLE`. The first such step of a consumer is always the one that is refused. */
function impossibleExpected(change: AllocationChange, consumer: ConsumerUuid): ExpectedGeneration {
  const step = change.steps.find(
    (one) =>
      one.kind === "replace" && one.consumer === consumer && encodeExpected(one.expected) === EXPECTED_IMPOSSIBLE,
  );
  assert(step?.kind === "replace", `no step expects of consumer ${consumer} what cannot be`);
  return step.expected;
}

function consumersOf(step: AllocationStep): ConsumerUuid[] {
  return step.kind === "replace" ? [step.consumer] : [step.from, step.to];
}

/** Collects the parallel arrays. All indexes count from 1, as SQL's arrays do. */
class ChangeEncoder {
  readonly #consumers: Interned<ConsumerUuid>;
  /** By consumer. It is -1 until a step names the consumer. */
  readonly #consumerOwner: number[];
  readonly #owners = new Interned<string>();
  readonly #ownerValues: ConsumerOwner[] = [];
  readonly #providers = new Interned<string>();
  readonly #classes = new Interned<string>();
  readonly #inventories = new Interned<string>();
  readonly #inventoryProvider: number[] = [];
  readonly #inventoryClass: number[] = [];
  /** For each inventory, the last step that names it. */
  readonly #inventoryStep: number[] = [];
  readonly #changeStepEnd: number[] = [];
  readonly #changeBumps: string[] = [];
  readonly #stepConsumer: number[] = [];
  readonly #stepExpected: number[] = [];
  readonly #stepMoveTo: number[] = [];
  readonly #stepOwner: number[] = [];
  readonly #stepItemEnd: number[] = [];
  readonly #itemInventory: number[] = [];
  readonly #itemAmount: number[] = [];

  constructor(changes: readonly AllocationChange[]) {
    const consumers = new Set<ConsumerUuid>();
    for (const change of changes) {
      for (const step of change.steps) for (const consumer of consumersOf(step)) consumers.add(consumer);
    }
    // Ascending, as ledger_apply requires.
    this.#consumers = new Interned([...consumers].sort());
    this.#consumerOwner = new Array<number>(consumers.size).fill(-1);
  }

  add(change: AllocationChange): void {
    for (const step of change.steps) {
      if (step.kind === "replace") this.#addReplace(step);
      else this.#addMove(step);
      this.#stepItemEnd.push(this.#itemInventory.length);
    }
    this.#changeStepEnd.push(this.#stepConsumer.length);
    this.#changeBumps.push(change.bumpProviders === true ? "t" : "f");
  }

  #addReplace(step: Extract<AllocationStep, { kind: "replace" }>): void {
    const consumer = this.#consumers.indexOf(step.consumer);
    const owner = step.items.length === 0 ? 0 : this.#ownerIndex(step.owner);
    this.#noteFirst(consumer, owner);
    this.#stepConsumer.push(consumer);
    this.#stepExpected.push(encodeExpected(step.expected));
    this.#stepMoveTo.push(0);
    this.#stepOwner.push(owner);
    this.#addItems(step.items);
  }

  #addMove(step: Extract<AllocationStep, { kind: "move" }>): void {
    const from = this.#consumers.indexOf(step.from);
    const to = this.#consumers.indexOf(step.to);
    this.#noteFirst(from, 0);
    this.#noteFirst(to, 0);
    this.#stepConsumer.push(from);
    this.#stepExpected.push(EXPECTED_ANY);
    this.#stepMoveTo.push(to);
    this.#stepOwner.push(this.#ownerIndex({ projectId: "", userId: "", type: step.toType }));
  }

  #noteFirst(consumer: number, owner: number): void {
    if (this.#consumerOwner[consumer - 1] === -1) this.#consumerOwner[consumer - 1] = owner;
  }

  #ownerIndex(owner: ConsumerOwner): number {
    const index = this.#owners.indexOf(JSON.stringify([owner.projectId, owner.userId, owner.type]));
    if (index > this.#ownerValues.length) this.#ownerValues.push(owner);
    return index;
  }

  #addItems(items: readonly AllocationItem[]): void {
    const step = this.#stepConsumer.length;
    for (const { provider, resourceClass, amount } of items) {
      assert(
        Number.isSafeInteger(amount) && amount > 0,
        `the amount of ${resourceClass} must be a positive integer, not ${amount}`,
      );
      const providerIndex = this.#providers.indexOf(provider);
      const classIndex = this.#classes.indexOf(resourceClass);
      const inventory = this.#inventories.indexOf(`${providerIndex} ${classIndex}`);
      if (inventory > this.#inventoryProvider.length) {
        this.#inventoryProvider.push(providerIndex);
        this.#inventoryClass.push(classIndex);
      }
      assert(this.#inventoryStep[inventory] !== step, `${resourceClass} of provider ${provider} is listed twice`);
      this.#inventoryStep[inventory] = step;
      this.#itemInventory.push(inventory);
      this.#itemAmount.push(amount);
    }
  }

  /** The fields in the order of the type `ledger_batch`. */
  literal(): string {
    return compositeLiteral([
      arrayLiteral(this.#consumers.values),
      arrayLiteral(this.#consumerOwner),
      textArrayLiteral(this.#ownerValues.map((owner) => owner.projectId)),
      textArrayLiteral(this.#ownerValues.map((owner) => owner.userId)),
      textArrayLiteral(this.#ownerValues.map((owner) => owner.type)),
      arrayLiteral(this.#providers.values),
      textArrayLiteral(this.#classes.values),
      arrayLiteral(this.#inventoryProvider),
      arrayLiteral(this.#inventoryClass),
      arrayLiteral(this.#changeStepEnd),
      arrayLiteral(this.#changeBumps),
      arrayLiteral(this.#stepConsumer),
      arrayLiteral(this.#stepExpected),
      arrayLiteral(this.#stepMoveTo),
      arrayLiteral(this.#stepOwner),
      arrayLiteral(this.#stepItemEnd),
      arrayLiteral(this.#itemInventory),
      arrayLiteral(this.#itemAmount),
    ]);
  }
}
