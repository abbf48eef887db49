import {
  type ConsumerUuid,
  consumerUuid,
  type ProviderUuid,
  providerUuid,
  resourceClass,
} from "../../core/ledger/ids.ts";
import type { ProviderTree } from "../../core/ledger/provider-tree.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { inventory, spec, tree } from "../rigs/ledger-builders.ts";

/** An empty ledger, and how to dispose of it. */
export interface LedgerSubject {
  readonly ledger: Ledger;
  dispose(): Promise<void>;
}

// The scene of each test of the contract: a host with a GPU as its child, and another host that only takes small servers.
export const HOST: ProviderUuid = providerUuid("a0000000-0000-4000-8000-000000000001");
export const GPU: ProviderUuid = providerUuid("a0000000-0000-4000-8000-000000000002");
export const OTHER: ProviderUuid = providerUuid("b0000000-0000-4000-8000-000000000001");
/** Its UUID sorts last. */
export const STRANGER: ProviderUuid = providerUuid("d0000000-0000-4000-8000-000000000001");
export const server = (digit: string): ConsumerUuid => consumerUuid(`c0000000-0000-4000-8000-00000000000${digit}`);

export function hostTree(vcpus = 8): ProviderTree {
  const memory = inventory(1024, { stepSize: 64, minUnit: 64 });
  return tree(
    spec(HOST, "host", { inventories: { VCPU: inventory(vcpus), MEMORY_MB: memory } }),
    spec(GPU, "gpu", { parent: HOST, inventories: { CUSTOM_GPU_MILLI: inventory(1000) }, traits: ["CUSTOM_GPU_T4"] }),
  );
}

export function otherTree(): ProviderTree {
  return tree(spec(OTHER, "other", { inventories: { VCPU: inventory(4, { maxUnit: 2 }) } }));
}

/** The used amount of the inventory, or undefined when it does not exist. */
export async function usedOf(ledger: Ledger, provider: ProviderUuid, name: string): Promise<number | undefined> {
  const { providers } = await ledger.dump();
  return providers.find(({ uuid }) => uuid === provider)?.inventories.get(resourceClass(name))?.used;
}
