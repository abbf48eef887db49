import { assert } from "../../../core/assert.ts";
import type { AllocationChange, AllocationOutcome, AllocationStep } from "../../../core/ledger/allocation-change.ts";
import type { AllocationItem, ConsumerOwner } from "../../../core/ledger/model.ts";
import { Interned } from "../client/interned.ts";
import { arrayLiteral, compositeLiteral, textArrayLiteral } from "../client/literals.ts";

type Claim = Extract<AllocationStep, { kind: "replace" }>;

/** Whether the change claims for a single consumer that may be new, which is the kind that `ledger_claim_first` accepts. */
export function mayBeFirstClaim(change: AllocationChange): boolean {
  const [step, ...others] = change.steps;
  return step?.kind === "replace" && others.length === 0 && typeof step.expected !== "number" && step.items.length > 0;
}

/**
 * Encodes the changes as the literal of one `ledger_first_claims`. Null when one of them is not the first claim of a single consumer, or
 * when they request more of an inventory than a number can count. Asserts that amounts are positive integers. Cost: linear.
 */
export function encodeFirstClaims(changes: readonly AllocationChange[]): string | null {
  if (!changes.every(mayBeFirstClaim)) return null;
  const claims = changes
    .map(({ steps, bumpProviders }) => ({ claim: steps[0] as Claim, raises: bumpProviders === true ? 1 : 0 }))
    .sort((a, b) => (a.claim.consumer < b.claim.consumer ? -1 : 1));
  if (claims.some(({ claim }, at) => claim.consumer === claims[at - 1]?.claim.consumer)) return null;
  const encoder = new ClaimEncoder();
  for (const { claim, raises } of claims) encoder.add(claim, raises);
  return encoder.literal();
}

/** Takes the parameters that `encodeLoneClaim` returns. */
export const CLAIM_ALONE = "select ledger_claim_alone($1, $2, $3, $4, $5, $6, $7, $8) as claimed";

/**
 * The parameters of `ledger_claim_alone` when the only change is the first claim of a single consumer from a single provider; otherwise null.
 * Asserts that amounts are positive integers.
 */
export function encodeLoneClaim(changes: readonly AllocationChange[]): unknown[] | null {
  const [change, ...others] = changes;
  if (change === undefined || others.length > 0 || !mayBeFirstClaim(change)) return null;
  const { consumer, owner, items } = change.steps[0] as Claim;
  const { provider } = items[0]!;
  if (items.some((item) => item.provider !== provider)) return null;
  for (const item of items) assertAmount(item);
  return [
    consumer,
    owner.projectId,
    owner.userId,
    owner.type,
    provider,
    change.bumpProviders === true,
    textArrayLiteral(items.map((item) => item.resourceClass)),
    arrayLiteral(items.map((item) => item.amount)),
  ];
}

/** The outcomes of these changes when `ledger_claim_first` or `ledger_claim_alone` has applied them. Their consumers are new. */
export function firstClaimOutcomes(changes: readonly AllocationChange[]): readonly AllocationOutcome[] {
  return changes.map(({ steps }) => ({ kind: "committed", generations: new Map([[(steps[0] as Claim).consumer, 1]]) }));
}

/** The demand of a batch's items for one inventory. */
interface Demand {
  readonly provider: number;
  readonly resourceClass: number;
  sum: number;
  least: number;
  most: number;
  /** The greatest common divisor of the amounts. If it is a multiple of a step size, all amounts are. */
  unit: number;
}

/** Collects the parallel arrays. All indexes count from 1, as SQL's arrays do. */
class ClaimEncoder {
  readonly #consumers: string[] = [];
  readonly #consumerOwner: number[] = [];
  readonly #owners = new Interned<string>();
  readonly #ownerValues: ConsumerOwner[] = [];
  readonly #providers = new Interned<string>();
  readonly #raises: number[] = [];
  readonly #classes = new Interned<string>();
  readonly #inventories = new Map<string, number>();
  readonly #demands: Demand[] = [];
  readonly #itemConsumer: number[] = [];
  readonly #itemInventory: number[] = [];
  readonly #itemAmount: number[] = [];

  add({ consumer, owner, items }: Claim, raises: number): void {
    const at = this.#consumers.push(consumer);
    this.#consumerOwner.push(this.#ownerIndex(owner));
    for (const item of items) {
      this.#itemConsumer.push(at);
      this.#itemInventory.push(this.#demand(item));
      this.#itemAmount.push(item.amount);
    }
    for (const provider of new Set(items.map((item) => item.provider))) {
      const index = this.#providers.indexOf(provider) - 1;
      this.#raises[index] = (this.#raises[index] ?? 0) + raises;
    }
  }

  #ownerIndex(owner: ConsumerOwner): number {
    const index = this.#owners.indexOf(JSON.stringify([owner.projectId, owner.userId, owner.type]));
    if (index > this.#ownerValues.length) this.#ownerValues.push(owner);
    return index;
  }

  #demand(item: AllocationItem): number {
    assertAmount(item);
    const { provider, resourceClass, amount } = item;
    const key = `${provider} ${resourceClass}`;
    const index = this.#inventories.get(key);
    if (index === undefined) {
      this.#demands.push({
        provider: this.#providers.indexOf(provider),
        resourceClass: this.#classes.indexOf(resourceClass),
        sum: amount,
        least: amount,
        most: amount,
        unit: amount,
      });
      this.#inventories.set(key, this.#demands.length);
      return this.#demands.length;
    }
    const demand = this.#demands[index - 1]!;
    demand.sum += amount;
    demand.least = Math.min(demand.least, amount);
    demand.most = Math.max(demand.most, amount);
    demand.unit = greatestCommonDivisor(demand.unit, amount);
    return index;
  }

  /** The fields in the order of the type `ledger_first_claims`. */
  literal(): string | null {
    const demands = this.#demands;
    if (demands.some(({ sum }) => !Number.isSafeInteger(sum))) return null;
    return compositeLiteral([
      arrayLiteral(this.#consumers),
      arrayLiteral(this.#consumerOwner),
      textArrayLiteral(this.#ownerValues.map((owner) => owner.projectId)),
      textArrayLiteral(this.#ownerValues.map((owner) => owner.userId)),
      textArrayLiteral(this.#ownerValues.map((owner) => owner.type)),
      arrayLiteral(this.#providers.values),
      arrayLiteral(this.#raises),
      textArrayLiteral(this.#classes.values),
      arrayLiteral(demands.map(({ provider }) => provider)),
      arrayLiteral(demands.map(({ resourceClass }) => resourceClass)),
      arrayLiteral(demands.map(({ sum }) => sum)),
      arrayLiteral(demands.map(({ least }) => least)),
      arrayLiteral(demands.map(({ most }) => most)),
      arrayLiteral(demands.map(({ unit }) => unit)),
      arrayLiteral(this.#itemConsumer),
      arrayLiteral(this.#itemInventory),
      arrayLiteral(this.#itemAmount),
    ]);
  }
}

function assertAmount({ resourceClass, amount }: AllocationItem): void {
  assert(
    Number.isSafeInteger(amount) && amount > 0,
    `the amount of ${resourceClass} must be a positive integer, not ${amount}`,
  );
}

function greatestCommonDivisor(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
