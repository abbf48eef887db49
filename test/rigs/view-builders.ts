import { aggregateUuid, providerUuid, resourceClass, trait } from "../../core/ledger/ids.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";

/** The differences of a test's provider from a plain root. */
export interface ProviderOptions {
  readonly parent?: string;
  readonly root?: string;
  readonly traits?: readonly string[];
  readonly aggregates?: readonly string[];
  readonly minUnit?: number;
  readonly maxUnit?: number;
  readonly stepSize?: number;
  readonly used?: number;
}

/** The rows of a provider. */
export function provider(
  uuid: string,
  inventories: Readonly<Record<string, number>>,
  options: ProviderOptions = {},
): RowChange[] {
  const id = providerUuid(uuid);
  return [
    {
      kind: "provider-put",
      uuid: id,
      name: uuid,
      parent: options.parent === undefined ? null : providerUuid(options.parent),
      root: providerUuid(options.root ?? options.parent ?? uuid),
      generation: 0,
    },
    ...Object.entries(inventories).map(
      ([name, total]): RowChange => ({
        kind: "inventory-put",
        provider: id,
        resourceClass: resourceClass(name),
        inventory: {
          total,
          reserved: 0,
          minUnit: options.minUnit ?? 1,
          maxUnit: options.maxUnit ?? total,
          stepSize: options.stepSize ?? 1,
          allocationRatio: 1,
        },
        used: options.used ?? 0,
      }),
    ),
    ...(options.traits ?? []).map((name): RowChange => ({ kind: "trait-added", provider: id, trait: trait(name) })),
    ...(options.aggregates ?? []).map(
      (name): RowChange => ({ kind: "aggregate-added", provider: id, aggregate: aggregateUuid(name) }),
    ),
  ];
}
/** The row of a host. */
export const host = (name: string, root: string, state: { up?: boolean; disabled?: boolean } = {}): RowChange => ({
  kind: "host-put",
  host: name,
  provider: providerUuid(root),
  up: state.up ?? true,
  disabled: state.disabled ?? false,
});
/** A view that shows these rows. */
export function viewOf(...changes: readonly (RowChange | readonly RowChange[])[]): LedgerView {
  const view = new LedgerView();
  view.applyAll(changes.flat());
  return view;
}
/** A machine with this many identical GPUs. */
export const gpuHost = (name: string, gpus: number, options: ProviderOptions = {}): RowChange[] => [
  ...provider(name, { VCPU: 64, MEMORY_MB: 4096 }),
  ...Array.from({ length: gpus }, (_, index) =>
    provider(`${name}-gpu${index}`, { CUSTOM_GPU_MILLI: 1000 }, { parent: name, ...options }),
  ).flat(),
];
