import { describe, expect, test } from "vitest";
import { CandidateSearch } from "../../core/candidates/best/candidate-search.ts";
import { providerUuid, resourceClass, trait } from "../../core/ledger/ids.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { searchOf } from "../../core/scheduling/host-request.ts";
import { asked, hostRequestOf, type Specs } from "../../core/scheduling/request/some-request.ts";
import type { AllocationRequest } from "../../proto/gen/berth/shared.ts";
import { readSettings } from "../../runtime/settings.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { makeSysroot, numaNode, twoSockets } from "../../test/rigs/made-up-sysroot.ts";
import fc from "../../test/rigs/property.ts";
import type { PrepareOrder } from "./driver.ts";
import { type CpuHolder, GuestPins } from "./guest-pins.ts";
import { treeOf } from "./host-config.ts";
import { agentDeclaration, hostSourceOf } from "./settings.ts";

const GIB_KIB = 1024 ** 2;

/** A discovered machine of two NUMA nodes with two cores of two threads each, of which CPU 0 is shared, with its ledger. */
function machine(...flags: readonly string[]) {
  const sysroot = makeSysroot(
    twoSockets(),
    numaNode(0, "0-1,4-5", 8 * GIB_KIB, { 2048: 1024 }),
    numaNode(1, "2-3,6-7", 8 * GIB_KIB, { 2048: 1024 }),
  );
  const sets = ["--cpu-shared-set", "0", "--cpu-dedicated-set", "1-7", "--reserved-host-memory-mb", "0"];
  const argv = ["--agent-id", "a", "--conductors", "c:1", "--discover", "--sysroot", sysroot, "--host", "h"];
  const read = readSettings(agentDeclaration, { argv: [...argv, ...sets, ...flags], env: {} });
  if (read.kind === "help") throw new Error("no help was asked for");
  const source = hostSourceOf(read.settings);
  const [host] = source.look().hosts;
  const ledger = new Ledger(treeOf(host!));
  return { source, ledger };
}

/** What schedulers see of the machine. Claims are made by hand. */
class Ledger {
  readonly #view = new LedgerView();
  readonly #totals = new Map<string, number>();
  readonly #used = new Map<string, number>();

  constructor({ providers, rootProvider }: ReturnType<typeof treeOf>) {
    const root = providerUuid(rootProvider);
    for (const { uuid, name, parent, inventories, traits } of providers) {
      const provider = providerUuid(uuid);
      const above = parent === "" ? null : providerUuid(parent);
      this.#view.apply({ kind: "provider-put", uuid: provider, name, parent: above, root, generation: 0 });
      for (const [name, { total }] of Object.entries(inventories)) {
        this.#totals.set(`${uuid} ${name}`, total);
        this.#put(uuid, name);
      }
      for (const one of traits) this.#view.apply({ kind: "trait-added", provider, trait: trait(one) });
    }
    this.#view.apply({ kind: "host-put", host: "h", provider: root, up: true, disabled: false });
  }

  /** The first way in which the flavor fits, or null. */
  way(extraSpecs: Specs): AllocationRequest | null {
    const [found] = new CandidateSearch(this.#view, { ...searchOf(hostRequestOf(request(extraSpecs))), limit: 1 });
    if (found === undefined) return null;
    const mappings = [...found.mappings].map(([suffix, serving]) => [suffix, serving.join()]);
    return { items: found.items.map((item) => ({ ...item })), mappings: Object.fromEntries(mappings) };
  }

  /** Takes what is in the way, or gives it back. */
  book({ items }: AllocationRequest, times: 1 | -1): void {
    for (const { provider, resourceClass: name, amount } of items) {
      const key = `${provider} ${name}`;
      this.#used.set(key, (this.#used.get(key) ?? 0) + times * amount);
      this.#put(provider, name);
    }
  }

  #put(uuid: string, name: string): void {
    const total = this.#totals.get(`${uuid} ${name}`) ?? 0;
    const inventory = { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
    const used = this.#used.get(`${uuid} ${name}`) ?? 0;
    this.#view.apply({
      kind: "inventory-put",
      provider: providerUuid(uuid),
      resourceClass: resourceClass(name),
      inventory,
      used,
    });
  }
}

const flavorOf = (vcpus: number, extraSpecs: Specs) => ({
  ...{ id: "f", name: "f", vcpus, memoryMib: 1024, diskGib: 0, ephemeralGib: 0, swapMib: 0 },
  extraSpecs: { ...extraSpecs },
});
const vcpusOf = ({ vcpus = "1" }: Specs): number => Number(vcpus);
const specsOf = ({ vcpus: _, ...extraSpecs }: Specs): Specs => extraSpecs;
const request = (specs: Specs) => asked({}, {}, { flavor: flavorOf(vcpusOf(specs), specsOf(specs)) });

const orderOf = (index: number, specs: Specs, allocation: AllocationRequest): PrepareOrder => {
  const server = serverSpec(index, { flavor: flavorOf(vcpusOf(specs), specsOf(specs)) });
  return { host: "h", serverUuid: server.uuid, attemptId: `t${index}/0`, server, movedFrom: null, allocation };
};

const DEDICATED = { "hw:cpu_policy": "dedicated" };

describe("what the scheduler's search claims", () => {
  const specs: fc.Arbitrary<Specs> = fc.constantFrom<Specs>(
    { vcpus: "1", ...DEDICATED },
    { vcpus: "2", ...DEDICATED },
    { vcpus: "3", ...DEDICATED },
    { vcpus: "2", ...DEDICATED, "hw:numa_nodes": "2" },
    { vcpus: "2", ...DEDICATED, "hw:numa_nodes": "1", "hw:mem_page_size": "2048" },
    { vcpus: "1", ...DEDICATED, "hw:emulator_threads_policy": "isolate" },
    { vcpus: "2", "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "1" },
    { vcpus: "1" },
    { vcpus: "2", "resources:PCPU": "2", "resources:VCPU": "0" },
  );
  const steps = fc.array(fc.record({ server: fc.integer({ min: 0, max: 6 }), specs }), { maxLength: 25 });

  test.each([
    ["in NUMA nodes", []],
    ["on a flat host", ["--flat"]],
  ])(
    "%s is what the host can give: as many CPUs of each provider as were claimed, and no two guests have one in common",
    async (_, flags) => {
      const { source } = machine(...flags);
      const places = new Map(source.layoutOf("h")?.places.map((place) => [place.provider, place]));
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          const { hosts } = source.look();
          const ledger = new Ledger(treeOf(hosts[0]!));
          const guests = new Map<number, CpuHolder & { readonly claim: AllocationRequest }>();
          const pins = new GuestPins({
            layoutOf: (host) => source.layoutOf(host),
            recorded: async () => [...guests.values()],
          });
          for (const { server, specs } of all) {
            const before = guests.get(server);
            if (before !== undefined) {
              guests.delete(server);
              ledger.book(before.claim, -1);
              continue;
            }
            const claim = ledger.way(specs);
            if (claim === null) continue;
            const order = orderOf(server, specs, claim);
            const held = (await pins.pinned(order, async (pinning) => pinning))?.held ?? [];
            ledger.book(claim, 1);
            for (const [provider, place] of places) {
              const claimed = claim.items.find((item) => item.provider === provider && item.resourceClass === "PCPU");
              expect(held.filter((cpu) => place.dedicated.includes(cpu))).toHaveLength(claimed?.amount ?? 0);
            }
            guests.set(server, { host: "h", serverUuid: order.serverUuid, held, claim });
            const cpus = [...guests.values()].flatMap((guest) => guest.held);
            expect(new Set(cpus).size).toBe(cpus.length);
          }
        }),
        { numRuns: 60 },
      );
    },
  );

  test("for each NUMA node of a guest is where its CPUs and its memory are", async () => {
    const { source, ledger } = machine();
    const pins = new GuestPins({ layoutOf: (host) => source.layoutOf(host), recorded: async () => [] });
    const specs = { vcpus: "4", ...DEDICATED, "hw:numa_nodes": "2" };
    const claim = ledger.way(specs);
    const pinning = await pins.pinned(orderOf(1, specs, claim!), async (chosen) => chosen);
    const nodeOf = (cpu: number) => Number([2, 3, 6, 7].includes(cpu));
    const nodes = pinning?.vcpus.map(([cpu]) => nodeOf(cpu!));
    const [first, second] = pinning!.memory.map(({ hostNode }) => hostNode);
    expect(nodes).toEqual([first, first, second, second]);
    expect(new Set([first, second])).toEqual(new Set([0, 1]));
    expect(pinning?.isBound).toBe(true);
  });
});

describe("two guests at the same time", () => {
  const layout = { places: [{ provider: "n", node: 0, dedicated: [1], shared: [0], pagesKib: [] }], cores: [] };
  const claim = { items: [{ provider: "n", resourceClass: "PCPU", amount: 1 }], mappings: {} };

  test("do not get the same CPU, not even while the records are being read or after the first one has just been recorded", async () => {
    const records: CpuHolder[] = [];
    const reads: (() => void)[] = [];
    const recorded = async () => {
      const before = [...records];
      await new Promise<void>((resolve) => reads.push(resolve));
      return before;
    };
    const pins = new GuestPins({ layoutOf: () => layout, recorded });
    const built = Promise.withResolvers<void>();
    const first = pins.pinned(orderOf(1, DEDICATED, claim), async (pinning) => {
      await built.promise;
      records.push({ host: "h", serverUuid: serverSpec(1).uuid, held: pinning?.held ?? [] });
      return pinning?.held;
    });
    await turns(reads, 1);
    reads[0]!();
    const second = pins.pinned(orderOf(2, DEDICATED, claim), async (pinning) => pinning?.held);
    await turns(reads, 2);
    // The second one has read the records, which lack the first one; now the first one is recorded and forgotten here.
    built.resolve();
    expect(await first).toEqual([1]);
    reads[1]!();
    await expect(second).rejects.toThrow("of which none is free");
  });

  test("a guest that could not be built gives its CPU back, and records that cannot be read give none away", async () => {
    let isReadable = true;
    const pins = new GuestPins({
      layoutOf: () => layout,
      recorded: () => (isReadable ? Promise.resolve([]) : Promise.reject(new Error("guest.json is damaged"))),
    });
    const built = (index: number) => pins.pinned(orderOf(index, DEDICATED, claim), async (pinning) => pinning?.held);
    const failing = pins.pinned(orderOf(1, DEDICATED, claim), () => Promise.reject(new Error("no disk")));
    await expect(failing).rejects.toThrow("no disk");
    expect(await built(2)).toEqual([1]);
    isReadable = false;
    await expect(built(3)).rejects.toThrow(
      "the dedicated CPUs and devices that are free are unknown, because guest.json is damaged",
    );
    isReadable = true;
    expect(await built(4)).toEqual([1]);
  });
});

test("guests whose CPUs are not in the dedicated set are found, and those of hosts that know no sets are not", async () => {
  const place = { provider: "n", node: 0, dedicated: [1, 2], shared: [0], pagesKib: [] };
  const held = (host: string, ...cpus: number[]): CpuHolder => ({ host, serverUuid: host, held: cpus });
  const guests = [held("a", 1, 2), held("b", 0, 1, 7), held("flat", 3), held("c")];
  const strays: CpuHolder[] = [];
  const layoutOf = (host: string) => (host === "flat" ? null : { places: [place], cores: [] });
  await new GuestPins({ layoutOf, recorded: async () => guests }).findStrays((guest) => strays.push(guest));
  expect(strays).toEqual([held("b", 0, 7)]);
  const unreadable = new GuestPins({ layoutOf, recorded: () => Promise.reject(new Error("damaged")) });
  await unreadable.findStrays((guest) => strays.push(guest));
  expect(strays).toHaveLength(1);
});

/** Waits until so many reads have begun. */
async function turns(reads: readonly unknown[], count: number): Promise<void> {
  for (let turn = 0; turn < 100 && reads.length < count; turn += 1) await Promise.resolve();
  expect(reads).toHaveLength(count);
}
