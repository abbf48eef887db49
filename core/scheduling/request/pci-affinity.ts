import { resourceClass } from "../../ledger/ids.ts";
import type { Asked } from "./asked.ts";
import { VGPU_WITH_DISPLAY } from "./display-heads.ts";
import { agreedRequest, hardwareRequest } from "./hardware-request.ts";
import type { HostRequestDraft } from "./host-request-draft.ts";
import { guestNodes } from "./numa-nodes.ts";
import type { RequestRefusal } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

const VGPU = resourceClass("VGPU");
const POLICIES = ["required", "preferred", "legacy", "socket"] as const;
/** Classes that do not count devices. */
const PLAIN_CLASSES: ReadonlySet<string> = new Set(["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"]);

/**
 * Reads `hw:pci_numa_affinity_policy`. `socket` requires the trait COMPUTE_SOCKET_PCI_NUMA_AFFINITY of the host. `required` puts the
 * numbered groups of devices that the flavor names (`resources_GPU:VGPU=1`) into one subtree with the guest's NUMA node, if it has one.
 * With several nodes a host request cannot say which of them is meant. `preferred` and `legacy` add nothing. It must run after the rule for NUMA
 * nodes.
 */
export const pciAffinity: TranslationRule = (asked, draft) => {
  const read = readPolicy(asked);
  if (read.kind !== "request") return read;
  if (read.value === "socket") draft.requireOfRoot("COMPUTE_SOCKET_PCI_NUMA_AFFINITY");
  return tieToNode(asked, draft, draft.suffixes());
};

/** Ties those of the given groups that request devices to the guest's node when the policy is `required`. */
export function tieToNode(asked: Asked, draft: HostRequestDraft, suffixes: readonly string[]): RequestRefusal | null {
  const read = readPolicy(asked);
  if (read.kind !== "request") return read;
  if (read.value !== "required") return null;
  const guest = guestNodes(asked);
  const [node, ...others] = guest.kind === "nodes" ? guest.nodes : [];
  if (node === undefined || others.length > 0) return null;
  // Any provider may serve a VGPU of the unnumbered group, so it moves to a numbered group that can be tied to the node, with its displays.
  const unnumbered = draft.group("").resources;
  const vgpus = unnumbered.get(VGPU) ?? 0;
  for (const name of vgpus > 0 ? VGPU_WITH_DISPLAY : []) {
    const amount = unnumbered.get(name) ?? 0;
    unnumbered.delete(name);
    if (amount > 0) draft.add("_VGPU", name, amount);
  }
  for (const suffix of vgpus > 0 ? [...suffixes, "_VGPU"] : suffixes) {
    const { resources } = draft.group(suffix);
    const isDevice = [...resources].some(([name, amount]) => amount > 0 && !PLAIN_CLASSES.has(name));
    if (suffix !== "" && suffix !== node.suffix && isDevice) draft.sameSubtree.push([node.suffix, suffix]);
  }
  return null;
}

function readPolicy(asked: Asked) {
  return agreedRequest(hardwareRequest(asked, "pci_numa_affinity_policy"), POLICIES);
}
