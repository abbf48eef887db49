import type { AllocationRequest, ServerSpec } from "../../proto/gen/berth/shared.ts";
import { type AskedPlace, askedOf } from "../scheduling/request/asked.ts";
import { cpuPlan } from "../scheduling/request/cpu-plan.ts";
import { hardwareRequest } from "../scheduling/request/hardware-request.ts";
import { pageClass, requestedPages } from "../scheduling/request/memory-pages.ts";
import { type GuestNode, guestNodes } from "../scheduling/request/numa-nodes.ts";

const PCPU = "PCPU";
const VCPU = "VCPU";
const MEMORY = "MEMORY_MB";

/** What a guest needs of its host, by the resource providers that its claim names. Null stands for a provider that the claim does not name. */
export interface GuestNeeds {
  readonly kind: "needs";
  /** For each vCPU the provider that serves it, and whether the vCPU gets a CPU for itself. */
  readonly vcpus: readonly { readonly provider: string | null; readonly isDedicated: boolean }[];
  /** Whether the dedicated CPUs of the vCPUs must come from cores with several free threads (`hw:cpu_thread_policy=require`). */
  readonly requiresThreads: boolean;
  /** Dedicated CPUs for the hypervisor's other threads, with the provider that serves them. */
  readonly extra: { readonly provider: string | null; readonly count: number };
  /** Whether the hypervisor's other threads float over the shared CPUs (`hw:emulator_threads_policy=share`). */
  readonly sharesEmulator: boolean;
  /** One entry for each NUMA node that the guest sees, or a single one for a guest that sees none. */
  readonly memory: readonly { readonly memoryMib: number; readonly provider: string | null }[];
  /** Whether the memory is bound to the NUMA nodes of its providers. */
  readonly bindsMemory: boolean;
  /** The size of huge pages in KiB; `large` leaves the size to the host; null means ordinary pages. */
  readonly pages: number | "large" | null;
}

/** A guest whose claim does not give what its flavor needs. `reason` is a sentence. */
export interface NeedsRefused {
  readonly kind: "refused";
  readonly reason: string;
}

/**
 * Reads what a server's guest needs out of its flavor, its image and its claim. The claim decides: a flavor that asks for PCPU by
 * `resources:PCPU` has as many dedicated CPUs as were claimed. Refuses a claim with fewer PCPU than the flavor's CPU policy needs.
 */
export function guestNeedsOf(server: ServerSpec, allocation: AllocationRequest | undefined): GuestNeeds | NeedsRefused {
  const asked = askedOf(server);
  if (asked === null) return refused("the server has no flavor");
  const plan = cpuPlan(asked);
  const read = guestNodes(asked);
  if (plan.kind !== "plan" || read.kind !== "nodes")
    return refused("the server's flavor and image contradict each other");
  const claim = new Claim(allocation);
  const { nodes } = read;
  const vcpus = asked.flavor.vcpus;
  const claimed = claim.total(PCPU);
  const byPolicy = plan.policy === "dedicated" || plan.policy === "mixed";
  const needed = byPolicy ? plan.dedicated.size + plan.extraPcpus : 0;
  if (claimed < needed) return refused(`the guest needs ${needed} dedicated CPUs, and its claim has ${claimed} PCPU`);
  const isDedicated = (vcpu: number) => (byPolicy ? plan.dedicated.has(vcpu) : vcpu < claimed);
  const nodeOf = (vcpu: number) => nodes.find(({ cpus }) => cpus.has(vcpu));
  const dedicated = Array.from({ length: vcpus }, (_, vcpu) => vcpu).filter(isDedicated).length;
  return {
    kind: "needs",
    vcpus: Array.from({ length: vcpus }, (_, vcpu) => ({
      provider: claim.serving(nodeOf(vcpu), isDedicated(vcpu) ? PCPU : VCPU),
      isDedicated: isDedicated(vcpu),
    })),
    requiresThreads: requiresThreads(asked),
    extra: { provider: claim.serving(nodes[0], PCPU), count: byPolicy ? plan.extraPcpus : claimed - dedicated },
    sharesEmulator: asked.flavor.extraSpecs["hw:emulator_threads_policy"] === "share",
    memory: memoryOf(asked, nodes, claim),
    bindsMemory: nodes.length > 0 || dedicated > 0 || pagesOf(asked) !== null,
    pages: pagesOf(asked),
  };
}

/** A flavor with `prefer` leaves the choice to the image. */
function requiresThreads(asked: AskedPlace): boolean {
  const { flavor, image } = hardwareRequest(asked, "cpu_thread_policy");
  const said = flavor?.value === "prefer" ? (image ?? flavor) : (flavor ?? image);
  return said?.value === "require";
}

function memoryOf(asked: AskedPlace, nodes: readonly GuestNode[], claim: Claim): GuestNeeds["memory"] {
  const pages = pagesOf(asked);
  // Pages are a second limit of the memory's provider, and the stricter one.
  const resourceClass = typeof pages === "number" ? pageClass(pages) : MEMORY;
  const all = nodes.length === 0 ? [{ memoryMib: asked.flavor.memoryMib }] : nodes;
  return all.map((node) => ({
    memoryMib: node.memoryMib,
    provider: claim.serving("suffix" in node ? node : undefined, resourceClass),
  }));
}

/** Small pages, and `any`, are the ordinary ones. */
function pagesOf(asked: AskedPlace): GuestNeeds["pages"] {
  const requested = requestedPages(asked);
  if (requested === null) return null;
  if (requested.isLarge) return "large";
  return requested.pageKib === null || requested.pageKib <= 4 ? null : requested.pageKib;
}

/** Finds the providers of the parts of a claim. */
class Claim {
  readonly #items: AllocationRequest["items"];
  readonly #mappings: AllocationRequest["mappings"];

  constructor(allocation: AllocationRequest | undefined) {
    this.#items = allocation?.items ?? [];
    this.#mappings = allocation?.mappings ?? {};
  }

  total(resourceClass: string): number {
    return this.#of(resourceClass).reduce((sum, { amount }) => sum + amount, 0);
  }

  /**
   * The provider that serves the class to a NUMA node of the guest, or to a guest without NUMA nodes. A claim without the node's group, and an
   * amount that the flavor names outside of the node's group, are served by the only provider of the class, if there is only one.
   */
  serving(node: GuestNode | undefined, resourceClass: string): string | null {
    const items = this.#of(resourceClass);
    const ofNode = node === undefined ? undefined : this.#mappings[node.suffix];
    if (ofNode !== undefined && items.some(({ provider }) => provider === ofNode)) return ofNode;
    return items.length === 1 ? (items[0]?.provider ?? null) : null;
  }

  #of(resourceClass: string): AllocationRequest["items"] {
    return this.#items.filter((item) => item.resourceClass === resourceClass && item.amount > 0);
  }
}

const refused = (reason: string): NeedsRefused => ({ kind: "refused", reason });
