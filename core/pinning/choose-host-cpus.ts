import { formatNumberList } from "../discovery/format-number-list.ts";
import type { GuestNeeds, NeedsRefused } from "./guest-needs.ts";
import type { GuestPinning } from "./guest-pinning.ts";
import type { MachineLayout, ProviderPlace } from "./machine-layout.ts";

/** The host on which the guest is built, at this moment. */
export interface PinningHost {
  /** Null for a host that only says how many CPUs it has, and not which. */
  readonly layout: MachineLayout | null;
  /** Dedicated CPUs of other servers' guests. */
  readonly taken: ReadonlySet<number>;
  /**
   * Dedicated CPUs of this server's other guests on the host, of which at most one runs. The new guest gets these first: a resize
   * on its own host claims only the difference, so that there need not be others.
   */
  readonly own: ReadonlySet<number>;
}

export type ChosenPinning = { readonly kind: "chosen"; readonly pinning: GuestPinning } | NeedsRefused;

/**
 * Chooses the host's CPUs and NUMA nodes of a guest within the providers that its claim names. The same input gives the same
 * choice. Dedicated CPUs fill cores one by one, and each vCPU that floats gets the shared CPUs of its provider. Refuses when a provider has too few
 * free dedicated CPUs or no shared one, which only happens when the claim was made with another idea of the host.
 */
export function chooseHostCpus(needs: GuestNeeds, host: PinningHost): ChosenPinning {
  const picks = pickDedicated(needs, host);
  if (picks instanceof Map === false) return picks;
  const pageKib = pagesOf(needs, host.layout);
  if (pageKib === undefined)
    return refused(
      "the guest needs huge pages, and the host has none of a size that divides the memory of each of its NUMA nodes",
    );
  const place = (provider: string | null) => placeOf(host.layout, provider);
  const bare = needs.vcpus.map((vcpu) => (vcpu.isDedicated ? null : place(vcpu.provider))).find(hasNoShared);
  if (bare) return refused(`the guest needs shared CPUs of ${nameOf(bare)}, which has none`);
  const next = (provider: string | null): number => picks.get(provider)?.shift() ?? -1;
  const vcpus = needs.vcpus.map(({ provider, isDedicated }) =>
    isDedicated ? [next(provider)] : [...(place(provider)?.shared ?? [])],
  );
  const extra = Array.from({ length: needs.extra.count }, () => next(needs.extra.provider));
  const held = [...vcpus.filter((_, vcpu) => needs.vcpus[vcpu]?.isDedicated).flat(), ...extra];
  return {
    kind: "chosen",
    pinning: {
      vcpus,
      held: ascending(held),
      emulator: emulatorCpus(needs, host.layout, { vcpus, extra }),
      memory: needs.memory.map(({ memoryMib, provider }) => ({ memoryMib, hostNode: place(provider)?.node ?? null })),
      isBound: needs.bindsMemory && nodesOf(host.layout).size > 1,
      pageKib,
    },
  };
}

/** The dedicated CPUs that are chosen of each provider, in the order in which the guest gets them. */
function pickDedicated(needs: GuestNeeds, host: PinningHost): Map<string | null, number[]> | NeedsRefused {
  const counts = new Map<string | null, number>();
  const add = (provider: string | null, count: number) => counts.set(provider, (counts.get(provider) ?? 0) + count);
  for (const { provider, isDedicated } of needs.vcpus) if (isDedicated) add(provider, 1);
  if (needs.extra.count > 0) add(needs.extra.provider, needs.extra.count);
  const picks = new Map<string | null, number[]>();
  for (const [provider, count] of counts) {
    const place = placeOf(host.layout, provider);
    if (place === null) return refused(unknownPlace(provider, count));
    const untaken = place.dedicated.filter((cpu) => !host.taken.has(cpu));
    const free = needs.requiresThreads ? withSiblings(untaken, host.layout) : untaken;
    if (free.length < count) return refused(tooFew(place, free, { count, areThreads: needs.requiresThreads }));
    picks.set(provider, pick(free, count, host));
  }
  return picks;
}

/** The server's own CPUs come first; the others complete cores, if they can. */
function pick(free: readonly number[], count: number, { layout, own }: PinningHost): number[] {
  const mine = packed(
    free.filter((cpu) => own.has(cpu)),
    count,
    layout,
  );
  const others = packed(
    free.filter((cpu) => !own.has(cpu)),
    count - mine.length,
    layout,
  );
  return [...mine, ...others];
}

/**
 * Takes `count` of these CPUs, or all of them if there are fewer. It goes from core to core and takes the fullest core whose CPUs are all
 * needed. If every core has more CPUs than are needed, it takes from the emptiest one. So whole cores remain for later guests.
 */
function packed(cpus: readonly number[], count: number, layout: MachineLayout | null): number[] {
  const cores = coresOf(cpus, layout);
  const taken: number[] = [];
  while (taken.length < count && cores.length > 0) {
    const missing = count - taken.length;
    const fitting = cores.filter((core) => core.length <= missing);
    const among = fitting.length > 0 ? fitting : cores;
    const sizes = among.map((core) => core.length);
    const size = fitting.length > 0 ? Math.max(...sizes) : Math.min(...sizes);
    const core = among.find(({ length }) => length === size);
    if (core === undefined) break;
    taken.push(...core.slice(0, missing));
    cores.splice(cores.indexOf(core), 1);
  }
  return taken;
}

/** Leaves out each CPU that is alone in its core among these CPUs. */
function withSiblings(cpus: readonly number[], layout: MachineLayout | null): readonly number[] {
  return coresOf(cpus, layout)
    .filter((core) => core.length > 1)
    .flat();
}

/** These CPUs by their cores, in the order of the lowest CPU of each. */
function coresOf(cpus: readonly number[], layout: MachineLayout | null): (readonly number[])[] {
  const sorted = ascending(cpus);
  const coreOf = (cpu: number) => layout?.cores.find((core) => core.includes(cpu)) ?? [cpu];
  const groups = Map.groupBy(sorted, (cpu) => Math.min(...coreOf(cpu)));
  return [...groups.values()];
}

function emulatorCpus(
  { sharesEmulator }: GuestNeeds,
  layout: MachineLayout | null,
  { vcpus, extra }: { readonly vcpus: readonly (readonly number[])[]; readonly extra: readonly number[] },
): readonly number[] {
  if (extra.length > 0) return ascending(extra);
  const shared = (layout?.places ?? []).flatMap((place) => place.shared ?? []);
  if (sharesEmulator && shared.length > 0) return ascending(shared);
  // A vCPU that may run everywhere leaves the other threads free, too.
  return vcpus.some((cpus) => cpus.length === 0) ? [] : ascending(vcpus.flat());
}

/** The size of the guest's huge pages: null for ordinary ones, and undefined when the host has none that fit. */
function pagesOf({ pages, memory }: GuestNeeds, layout: MachineLayout | null): number | null | undefined {
  if (pages !== "large") return pages;
  const sizes = memory.map(({ provider }) => new Set(placeOf(layout, provider)?.pagesKib ?? []));
  const [first = new Set<number>()] = sizes;
  const fits = (kib: number) =>
    sizes.every((ofPlace) => ofPlace.has(kib)) && memory.every(({ memoryMib }) => (memoryMib * 1024) % kib === 0);
  return ascending([...first].filter(fits)).at(-1);
}

const placeOf = (layout: MachineLayout | null, provider: string | null): ProviderPlace | null =>
  layout?.places.find((place) => place.provider === provider) ?? null;

const nodesOf = (layout: MachineLayout | null): ReadonlySet<number | null> =>
  new Set(layout?.places.map(({ node }) => node));

const ascending = (numbers: readonly number[]): number[] => [...new Set(numbers)].sort((a, b) => a - b);

function unknownPlace(provider: string | null, count: number): string {
  const whose = provider === null ? "several resource providers" : `resource provider ${provider}`;
  return `the guest needs ${count} dedicated CPUs of ${whose}, and the host does not know which CPUs these are: name them in BERTH_CPU_DEDICATED_SET (--cpu-dedicated-set) of a discovered host`;
}

/** A guest whose list of CPUs is empty would run on all of them. */
const hasNoShared = (place: ProviderPlace | null): boolean => place?.shared?.length === 0;

const nameOf = ({ node }: ProviderPlace): string => (node === null ? "the host" : `NUMA node ${node}`);

function tooFew(
  place: ProviderPlace,
  free: readonly number[],
  { count, areThreads }: { readonly count: number; readonly areThreads: boolean },
): string {
  const { dedicated } = place;
  const all = dedicated.length === 0 ? "has none" : `has ${formatNumberList(ascending(dedicated))}`;
  const together = areThreads ? " together with another thread of their core" : "";
  const left =
    free.length === 0 ? `none is free${together}` : `${formatNumberList(ascending(free))} are free${together}`;
  return `the guest needs ${count} dedicated CPUs of ${nameOf(place)}, which ${all}, of which ${left}`;
}

const refused = (reason: string): NeedsRefused => ({ kind: "refused", reason });
