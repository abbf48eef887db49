/**
 * Branded identifiers of the ledger. A brand costs nothing at run time and prevents passing a consumer's UUID where a provider's is
 * expected.
 */
declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type ProviderUuid = Branded<"ProviderUuid">;
export type ConsumerUuid = Branded<"ConsumerUuid">;
export type AggregateUuid = Branded<"AggregateUuid">;
/** A resource class by its name: `VCPU`, `MEMORY_MB`, `CUSTOM_GPU_MILLI`, … */
export type ResourceClass = Branded<"ResourceClass">;
/** A trait by its name: `HW_CPU_X86_AVX2`, `CUSTOM_GPU_T4`, … */
export type Trait = Branded<"Trait">;

export const providerUuid = (value: string): ProviderUuid => value as ProviderUuid;
export const consumerUuid = (value: string): ConsumerUuid => value as ConsumerUuid;
export const aggregateUuid = (value: string): AggregateUuid => value as AggregateUuid;
export const resourceClass = (value: string): ResourceClass => value as ResourceClass;
export const trait = (value: string): Trait => value as Trait;
