import type { AllocationChange, AllocationStep } from "../../core/ledger/allocation-change.ts";
import {
  aggregateUuid,
  type ConsumerUuid,
  consumerUuid,
  type ProviderUuid,
  providerUuid,
} from "../../core/ledger/ids.ts";
import type { AllocationItem } from "../../core/ledger/model.ts";
import type { ProviderSpec, ProviderTree } from "../../core/ledger/provider-tree.ts";
import { inventory, item, spec } from "./ledger-builders.ts";
import fc from "./property.ts";

/** A batch for one of a ledger's two plain writes. */
export type LedgerCommand =
  | { readonly kind: "allocations"; readonly changes: readonly AllocationChange[] }
  | { readonly kind: "trees"; readonly trees: readonly ProviderTree[] };

/** A batch of reports by agents. */
export interface ReportCommand {
  readonly kind: "reports";
  readonly reports: readonly ProviderTree[];
}

/** There is little of everything, so that random commands conflict: three trees of up to four providers, five consumers, three classes. */
const CLASSES = ["VCPU", "MEMORY_MB", "CUSTOM_GPU"] as const;
const TREES = [1, 2, 3] as const;
const MEMBERS = [1, 2, 3, 4] as const;
const consumerOf = (digit: number): ConsumerUuid => consumerUuid(`c0000000-0000-4000-8000-00000000000${digit}`);
const providerOf = (tree: number, member: number): ProviderUuid =>
  providerUuid(`a0000000-0000-4000-8000-0000000000${tree}${member}`);

const consumer = fc.integer({ min: 1, max: 5 }).map(consumerOf);
const expected = fc.oneof(
  { weight: 3, arbitrary: fc.constant("any" as const) },
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 3 }) },
);
const owner = fc.record({
  projectId: fc.constantFrom("project", 'p"\\{}'),
  userId: fc.constantFrom("user", ""),
  type: fc.constantFrom("INSTANCE", "MIGRATION"),
});

const anyItem: fc.Arbitrary<AllocationItem> = fc
  .tuple(
    fc.constantFrom(...TREES),
    fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.constantFrom(...MEMBERS) }),
    fc.oneof(
      { weight: 30, arbitrary: fc.constantFrom(...CLASSES) },
      { weight: 1, arbitrary: fc.constant("CUSTOM_NOWHERE") },
    ),
    fc.integer({ min: 1, max: 6 }),
  )
  .map(([tree, member, name, amount]) => item(providerOf(tree, member), name, amount));
const items: fc.Arbitrary<AllocationItem[]> = fc.uniqueArray(anyItem, {
  maxLength: 4,
  selector: ({ provider, resourceClass: name }) => `${provider} ${name}`,
});

const step: fc.Arbitrary<AllocationStep> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("replace" as const), consumer, expected, owner, items }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("move" as const),
      from: consumer,
      to: consumer,
      toType: fc.constantFrom("INSTANCE", "MIGRATION"),
    }),
  },
);

/** A change of one to three steps, valid or not. */
export const anyChange: fc.Arbitrary<AllocationChange> = fc
  .tuple(
    fc.oneof(
      { weight: 3, arbitrary: fc.array(step, { minLength: 1, maxLength: 1 }) },
      { weight: 2, arbitrary: fc.array(step, { minLength: 1, maxLength: 3 }) },
    ),
    fc.boolean(),
  )
  .map(([steps, bumpProviders]) => (bumpProviders ? { steps, bumpProviders } : { steps }));

/** Only first claims, each of another consumer. Schedulers send these, and the SQL implementation has a shortcut for them. */
const firstClaims: fc.Arbitrary<readonly AllocationChange[]> = fc
  .uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 })
  .chain((digits) =>
    fc.tuple(
      ...digits.map((digit) =>
        fc.tuple(fc.constantFrom(null, "any" as const), owner, items, fc.boolean()).map(
          ([generation, itsOwner, itsItems, bumpProviders]): AllocationChange => ({
            steps: [
              { kind: "replace", consumer: consumerOf(digit), expected: generation, owner: itsOwner, items: itsItems },
            ],
            bumpProviders,
          }),
        ),
      ),
    ),
  );

const anyInventory = fc
  .record({
    total: fc.integer({ min: 1, max: 12 }),
    reserved: fc.integer({ min: 0, max: 1 }),
    minUnit: fc.constantFrom(1, 1, 1, 2),
    maxUnit: fc.constantFrom(12, 12, 4),
    stepSize: fc.constantFrom(1, 1, 1, 2),
    allocationRatio: fc.constantFrom(1, 1, 1.5, 0.75),
  })
  .map((fields) => inventory(fields.total, fields));

const anySpec = (treeNumber: number, member: number): fc.Arbitrary<ProviderSpec> =>
  fc
    .record({
      // Usually a unique name, and sometimes one that other providers have, too.
      name: fc.oneof(
        { weight: 8, arbitrary: fc.constant(`p${treeNumber}${member}`) },
        { weight: 1, arbitrary: fc.constantFrom("p11", "p12", "p21", "shared") },
      ),
      parent: fc.integer({ min: 1, max: Math.max(1, member - 1) }),
      expected: fc.oneof({ weight: 9, arbitrary: fc.constant("any" as const) }, { weight: 1, arbitrary: expected }),
      inventories: fc.dictionary(fc.constantFrom(...CLASSES), anyInventory, { noNullPrototype: true }),
      traits: fc.subarray(["CUSTOM_A", "HW_CPU_X86_AVX", "CUSTOM_B"]),
      aggregates: fc.option(
        fc.subarray([1, 2].map((digit) => aggregateUuid(`e0000000-0000-4000-8000-00000000000${digit}`))),
        { nil: undefined },
      ),
    })
    .map(({ name, parent, aggregates, ...rest }) =>
      spec(providerOf(treeNumber, member), name, {
        ...rest,
        ...(member === 1 ? {} : { parent: providerOf(treeNumber, parent) }),
        ...(aggregates === undefined ? {} : { aggregates }),
      }),
    );

/** A report of a tree, usually well-formed, and sometimes with a provider of another tree. */
export const anyTree: fc.Arbitrary<ProviderTree> = fc
  .tuple(
    fc.constantFrom(...TREES),
    fc.subarray([2, 3, 4]),
    fc.oneof({ weight: 12, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom(...TREES) }),
  )
  .chain(([treeNumber, members, foreign]) =>
    fc
      .tuple(
        anySpec(treeNumber, 1),
        ...members.map((member) => anySpec(treeNumber, member)),
        ...(foreign === null ? [] : [anySpec(foreign, 2)]),
      )
      .map((providers) => ({ root: providerOf(treeNumber, 1), providers: adopt(providers) })),
  );

/** Gives every provider except the root an earlier one as its parent. */
function adopt(providers: readonly ProviderSpec[]): readonly ProviderSpec[] {
  const seen: ProviderUuid[] = [];
  return providers.map((provider, index) => {
    const parent = index === 0 ? null : seen.includes(provider.parent!) ? provider.parent : seen[0]!;
    seen.push(provider.uuid);
    return { ...provider, parent };
  });
}

/** Trees that exist from the start, so that not every claim meets an unknown provider. */
export const initialTrees: readonly ProviderTree[] = TREES.map((treeNumber) => ({
  root: providerOf(treeNumber, 1),
  providers: MEMBERS.map((member) =>
    spec(providerOf(treeNumber, member), `p${treeNumber}${member}`, {
      ...(member === 1 ? {} : { parent: providerOf(treeNumber, 1) }),
      inventories: Object.fromEntries(CLASSES.map((name) => [name, inventory(10)])),
    }),
  ),
}));

export const anyCommand: fc.Arbitrary<LedgerCommand> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("allocations" as const),
      changes: fc.array(anyChange, { minLength: 1, maxLength: 8 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("allocations" as const), changes: firstClaims }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("trees" as const),
      trees: fc.array(anyTree, { minLength: 1, maxLength: 3 }),
    }),
  },
);

/** One report in each command, because a ledger may write several in an order of its own, which decides between reports that collide. */
export const anyReport: fc.Arbitrary<ReportCommand> = fc.record({
  kind: fc.constant("reports" as const),
  reports: anyTree.map((tree) => [tree]),
});
