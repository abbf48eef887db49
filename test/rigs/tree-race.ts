import type { Pool } from "pg";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { createPlacementStore } from "../../adapters/postgres/placement/postgres-placement-store.ts";
import { claim, release } from "../../core/ledger/allocation-change.ts";
import {
  consumerUuid,
  type ProviderUuid,
  providerUuid,
  resourceClass,
  type Trait,
  trait,
} from "../../core/ledger/ids.ts";
import type { AllocationItem } from "../../core/ledger/model.ts";
import type { ProviderTree } from "../../core/ledger/provider-tree.ts";
import { INSTANCE, inventory, item, spec, tree } from "./ledger-builders.ts";

const HOSTS = 20;
const SCHEDULERS = 4;
/** An operator's edit that conflicts this many times in a row is the sign of a bug. */
const TRIES_MAX = 100;
const MEMORY_MB = resourceClass("MEMORY_MB");

const rootOf = (host: number): ProviderUuid => uuidOf(1, host);
const gpuOf = (host: number): ProviderUuid => uuidOf(2, host);
const licensesOf = (host: number): ProviderUuid => uuidOf(3, host);
const uuidOf = (kind: number, host: number) =>
  providerUuid(`a0000000-0000-4000-8000-${String(kind * 1_000 + host).padStart(12, "0")}`);
const anyOf = (count: number): number => Math.floor(Math.random() * count);

export interface TreeRaceReport {
  readonly reports: number;
  readonly edits: number;
  readonly claims: number;
  /** Outcomes of reports after which the tree is not as reported. */
  readonly refusedReports: readonly string[];
  /** Values that operators have written and that are now lost. */
  readonly lostEdits: readonly string[];
}

/**
 * Agents report, operators edit traits and ratios over the Placement API, and four schedulers claim and release, all on the same 20 hosts,
 * as long as `goesOn` returns true. At the end everything is released and each host has been reported twice.
 */
export class TreeRace {
  readonly #ledger: PostgresLedger;
  readonly #placement: ReturnType<typeof createPlacementStore>;
  readonly #goesOn: () => boolean;
  readonly #refused: string[] = [];
  readonly #traits = new Map<number, Set<Trait>>(Array.from({ length: HOSTS }, (_, host) => [host, new Set()]));
  readonly #ratios = new Map<number, number>();
  #reports = 0;
  #edits = 0;
  #claims = 0;
  #servers = 0;

  constructor(pool: Pool, goesOn: () => boolean) {
    this.#ledger = new PostgresLedger(pool);
    this.#placement = createPlacementStore(pool, this.#ledger);
    this.#goesOn = goesOn;
  }

  async run(): Promise<TreeRaceReport> {
    const all = Array.from({ length: HOSTS }, (_, host) => host);
    await this.#report(all.map((host) => wholeTree(host)));
    for (const host of all) await this.#addLicenses(host);
    await Promise.all([
      ...[0, 1].map(() => this.#reportOn()),
      ...[0, 1].map((operator) => this.#editTraits(operator)),
      this.#editRatios(),
      ...Array.from({ length: SCHEDULERS }, () => this.#schedule()),
    ]);
    for (const _ of [1, 2]) await this.#report(all.map((host) => wholeTree(host)));
    return {
      ...{ reports: this.#reports, edits: this.#edits, claims: this.#claims, refusedReports: this.#refused },
      lostEdits: await this.#lostEdits(),
    };
  }

  async #report(trees: readonly ProviderTree[]): Promise<void> {
    for (const outcome of await this.#ledger.reportTrees(trees)) {
      this.#reports += 1;
      if (outcome.kind !== "replaced" && outcome.kind !== "unchanged") this.#refused.push(JSON.stringify(outcome));
    }
  }

  async #reportOn(): Promise<void> {
    while (this.#goesOn()) {
      const first = anyOf(HOSTS);
      await this.#report(Array.from({ length: 5 }, (_, index) => changedTree((first + index) % HOSTS)));
    }
  }

  async #editTraits(operator: number): Promise<void> {
    for (let edit = 0; this.#goesOn(); edit += 1) {
      const host = anyOf(HOSTS);
      const name = trait(`CUSTOM_OPERATOR_${operator}_${edit % 50}`);
      await this.#placement.createTrait(name);
      const mine = this.#traits.get(host)!;
      const removes = mine.has(name);
      await this.#insist(async () => {
        const now = (await this.#placement.traits(rootOf(host)))!;
        const wanted = new Set(now.value);
        if (removes) wanted.delete(name);
        else wanted.add(name);
        return this.#placement.setTraits(rootOf(host), now.generation, [...wanted]);
      });
      if (removes) mine.delete(name);
      else mine.add(name);
    }
  }

  async #editRatios(): Promise<void> {
    for (let edit = 0; this.#goesOn(); edit += 1) {
      const host = anyOf(HOSTS);
      const allocationRatio = 1 + (edit % 7) / 2;
      await this.#insist(async () => {
        const now = (await this.#placement.inventories(rootOf(host)))!;
        const { used: _, updatedAtMs: __, ...values } = now.value.get(MEMORY_MB)!;
        const changed = { ...values, allocationRatio };
        return this.#placement.putInventory(rootOf(host), now.generation, MEMORY_MB, changed, "update");
      });
      this.#ratios.set(host, allocationRatio);
    }
  }

  /** The rule for clients of the Placement API: after a conflict read again and compute again. */
  async #insist(edit: () => Promise<{ readonly kind: string }>): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const { kind } = await edit();
      if (kind === "written") break;
      if (kind !== "generation-conflict" || tries === TRIES_MAX) throw new Error(`an edit ended as ${kind}`);
    }
    this.#edits += 1;
  }

  async #schedule(): Promise<void> {
    const held: ReturnType<typeof consumerUuid>[] = [];
    const releaseOne = async () => {
      const [uuid] = held.splice(anyOf(held.length), 1);
      if (uuid !== undefined) await this.#ledger.applyAllocations([release(uuid, INSTANCE)]);
    };
    while (this.#goesOn()) {
      this.#servers += 1;
      const uuid = consumerUuid(`c0000000-0000-4000-8000-${String(this.#servers).padStart(12, "0")}`);
      const host = anyOf(HOSTS);
      const items: AllocationItem[] = [item(rootOf(host), "VCPU", 1 + anyOf(3)), item(rootOf(host), "MEMORY_MB", 64)];
      if (anyOf(2) === 0) items.push(item(gpuOf(host), "VGPU", 1));
      const [outcome] = await this.#ledger.applyAllocations([claim(uuid, INSTANCE, items)]);
      if (outcome?.kind === "committed") {
        this.#claims += 1;
        held.push(uuid);
      }
      if (held.length > 10) await releaseOne();
    }
    while (held.length > 0) await releaseOne();
  }

  async #addLicenses(host: number): Promise<void> {
    await this.#placement.createProvider({ uuid: licensesOf(host), name: `licenses-${host}`, parent: rootOf(host) });
  }

  async #lostEdits(): Promise<readonly string[]> {
    const { providers } = await this.#ledger.dump();
    const byUuid = new Map(providers.map((provider) => [provider.uuid, provider]));
    const lost: string[] = [];
    for (const [host, mine] of this.#traits) {
      const root = byUuid.get(rootOf(host));
      const found = [...(root?.traits ?? [])].filter((name) => name.startsWith("CUSTOM_OPERATOR"));
      if (JSON.stringify(found.sort()) !== JSON.stringify([...mine].sort())) lost.push(`traits of host ${host}`);
      const ratio = root?.inventories.get(MEMORY_MB)?.allocationRatio;
      if (ratio !== (this.#ratios.get(host) ?? 1)) lost.push(`ratio of host ${host}: ${ratio}`);
      if (byUuid.get(licensesOf(host))?.parent !== rootOf(host)) lost.push(`licenses of host ${host}`);
      if (byUuid.get(gpuOf(host))?.inventories.get(resourceClass("VGPU"))?.used !== 0) lost.push(`GPU of host ${host}`);
    }
    return lost;
  }
}

function wholeTree(host: number, vcpus = 16, hasGpu = true, traits: readonly string[] = []): ProviderTree {
  const inventories = { VCPU: inventory(vcpus), MEMORY_MB: inventory(4_096) };
  const gpu = spec(gpuOf(host), `gpu-${host}`, { parent: rootOf(host), inventories: { VGPU: inventory(4) } });
  return tree(spec(rootOf(host), `host-${host}`, { inventories, traits }), ...(hasGpu ? [gpu] : []));
}

/** A host that has shrunk or grown, lost its GPU or got it back, or has other traits than before. */
function changedTree(host: number): ProviderTree {
  return wholeTree(host, 4 + anyOf(12), anyOf(3) > 0, anyOf(2) === 0 ? ["HW_CPU_X86_AVX2"] : ["CUSTOM_BY_AGENT"]);
}
