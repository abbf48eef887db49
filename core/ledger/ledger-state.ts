import type { ConsumerUuid, ProviderUuid } from "./ids.ts";
import type { LedgerDump } from "./ledger-dump.ts";
import type { AllocationItem, Consumer, Provider } from "./model.ts";
import type { RowChange } from "./row-change.ts";

/** A consumer with everything that it holds. The list is never empty, since a consumer that holds nothing does not exist. */
export interface Holder extends Consumer {
  readonly items: readonly AllocationItem[];
}

/** Everything that the pure ledger knows. The records are immutable and are replaced as a whole. Only `evolve` writes the maps. */
export interface LedgerState {
  readonly providers: ReadonlyMap<ProviderUuid, Provider>;
  readonly consumers: ReadonlyMap<ConsumerUuid, Holder>;
  /** The provider that has each name. Names are unique. */
  readonly names: ReadonlyMap<string, ProviderUuid>;
  /** The members of each tree, by its root. */
  readonly trees: ReadonlyMap<ProviderUuid, ReadonlySet<ProviderUuid>>;
}

/** The changes of a decision: new records, `null` for records that cease to exist, and the same changes as rows for views. */
export interface LedgerDelta {
  readonly providers: ReadonlyMap<ProviderUuid, Provider | null>;
  readonly consumers: ReadonlyMap<ConsumerUuid, Holder | null>;
  readonly rows: readonly RowChange[];
}

/** An outcome with its effect on the state. The delta of a refusal is empty. */
export interface LedgerDecision<Outcome> {
  readonly outcome: Outcome;
  readonly delta: LedgerDelta;
}

const NO_DELTA: LedgerDelta = { providers: new Map(), consumers: new Map(), rows: [] };

/** A decision that changes nothing. */
export function unchanged<Outcome>(outcome: Outcome): LedgerDecision<Outcome> {
  return { outcome, delta: NO_DELTA };
}

interface MutableState extends LedgerState {
  readonly providers: Map<ProviderUuid, Provider>;
  readonly consumers: Map<ConsumerUuid, Holder>;
  readonly names: Map<string, ProviderUuid>;
  readonly trees: Map<ProviderUuid, Set<ProviderUuid>>;
}

export function emptyLedger(): LedgerState {
  const state: MutableState = { providers: new Map(), consumers: new Map(), names: new Map(), trees: new Map() };
  return state;
}

/** A copy that later changes of the original do not affect. Cost: proportional to the whole state. */
export function copyLedger({ providers, consumers, names, trees }: LedgerState): LedgerState {
  return {
    providers: new Map(providers),
    consumers: new Map(consumers),
    names: new Map(names),
    trees: new Map([...trees].map(([root, members]) => [root, new Set(members)])),
  };
}

/** Writes a decision's delta into the state on which it was made. Cost: proportional to the records of the delta. */
export function evolve(state: LedgerState, delta: LedgerDelta): void {
  const target = state as MutableState;
  for (const [uuid, holder] of delta.consumers) {
    if (holder === null) target.consumers.delete(uuid);
    else target.consumers.set(uuid, holder);
  }
  // All old names are removed before new ones are added, because providers of one tree may exchange names.
  for (const uuid of delta.providers.keys()) forget(target, uuid);
  for (const [uuid, provider] of delta.providers) {
    if (provider !== null) remember(target, uuid, provider);
  }
}

function forget(state: MutableState, uuid: ProviderUuid): void {
  const before = state.providers.get(uuid);
  if (before === undefined) return;
  state.providers.delete(uuid);
  state.names.delete(before.name);
  const members = state.trees.get(before.root);
  members?.delete(uuid);
  if (members?.size === 0) state.trees.delete(before.root);
}

function remember(state: MutableState, uuid: ProviderUuid, provider: Provider): void {
  state.providers.set(uuid, provider);
  state.names.set(provider.name, uuid);
  const members = state.trees.get(provider.root);
  if (members === undefined) state.trees.set(provider.root, new Set([uuid]));
  else members.add(uuid);
}

/** All rows that a view needs to show this state. A follower loads them before it follows. */
export function rowsOf(state: LedgerState): readonly RowChange[] {
  return [...state.providers.values()].flatMap(rowsOfProvider);
}

function rowsOfProvider(provider: Provider): RowChange[] {
  return [
    providerRow(provider),
    ...[...provider.inventories].map(
      ([resourceClass, { used, ...inventory }]): RowChange => ({
        kind: "inventory-put",
        provider: provider.uuid,
        resourceClass,
        inventory,
        used,
      }),
    ),
    ...[...provider.traits].map((trait): RowChange => ({ kind: "trait-added", provider: provider.uuid, trait })),
    ...[...provider.aggregates].map(
      (aggregate): RowChange => ({
        kind: "aggregate-added",
        provider: provider.uuid,
        aggregate,
      }),
    ),
  ];
}

/** The provider's own row, without its inventories, traits and aggregates. */
export function providerRow(provider: Provider): RowChange {
  const { uuid, name, parent, root, generation } = provider;
  return { kind: "provider-put", uuid, name, parent, root, generation };
}

/** The state sorted by UUID, class and trait, so that equal ledgers have equal dumps. */
export function dumpLedger(state: LedgerState): LedgerDump {
  return {
    providers: [...state.providers.values()].sort(byUuid).map((provider) => ({
      ...provider,
      inventories: new Map([...provider.inventories].sort(([a], [b]) => compare(a, b))),
      traits: new Set([...provider.traits].sort(compare)),
      aggregates: new Set([...provider.aggregates].sort(compare)),
    })),
    consumers: [...state.consumers.values()].sort(byUuid).map((holder) => ({
      ...holder,
      items: [...holder.items].sort(byProviderThenClass),
    })),
  };
}

const byUuid = (a: { readonly uuid: string }, b: { readonly uuid: string }): number => compare(a.uuid, b.uuid);

/** The order in which a consumer's items are listed. */
export function byProviderThenClass(a: AllocationItem, b: AllocationItem): number {
  return compare(a.provider, b.provider) || compare(a.resourceClass, b.resourceClass);
}

/** Compares by code units, like Postgres' collation "C" and the order of its UUIDs. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
