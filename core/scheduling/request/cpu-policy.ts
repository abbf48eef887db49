import { trait } from "../../ledger/ids.ts";
import type { Asked } from "./asked.ts";
import { cpuPlan } from "./cpu-plan.ts";
import { agreedRequest, contradiction, hardwareRequest } from "./hardware-request.ts";
import type { HostRequestDraft } from "./host-request-draft.ts";
import { badExtraSpec, badImageProperty, type RequestRefusal } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

const HYPERTHREADING = "HW_CPU_HYPERTHREADING";
const THREAD_POLICIES = ["prefer", "isolate", "require"] as const;

/**
 * Adds PCPU for dedicated CPUs and VCPU for the others, unless the server has NUMA nodes, whose rule adds them. `hw:cpu_thread_policy`:
 * `isolate` forbids and `require` requires the trait HW_CPU_HYPERTHREADING, which is a trait of the root when the CPUs belong to its
 * children.
 */
export const cpuPolicy: TranslationRule = (asked, draft) => {
  const plan = cpuPlan(asked);
  if (plan.kind !== "plan") return plan;
  const hasNodes = hardwareRequest(asked, "numa_nodes");
  const inNodes = hasNodes.flavor !== null || hasNodes.image !== null;
  if ((plan.policy === "dedicated" || plan.policy === "mixed") && !inNodes) {
    const shared = asked.flavor.vcpus - plan.dedicated.size;
    if (shared > 0) draft.add("", "VCPU", shared);
    draft.add("", "PCPU", plan.dedicated.size + plan.extraPcpus);
  }
  const isPinned = plan.policy === "dedicated" || plan.policy === "mixed" || draft.names("PCPU");
  return threadPolicy(asked, draft, { inNodes, isPinned });
};

function threadPolicy(
  asked: Asked,
  draft: HostRequestDraft,
  { inNodes, isPinned }: { readonly inNodes: boolean; readonly isPinned: boolean },
): RequestRefusal | null {
  const { flavor, image } = hardwareRequest(asked, "cpu_thread_policy");
  // A flavor with `prefer` leaves the choice to the image.
  const flavorDecides = flavor !== null && !(flavor.value === "prefer" && image !== null);
  const read = agreedRequest({ flavor: flavorDecides ? flavor : null, image }, THREAD_POLICIES);
  if (read.kind !== "request") return read;
  if (read.value === null) return null;
  const request = flavor ?? image;
  if (!isPinned && request) {
    const allowed = "left out unless the CPU policy is dedicated or mixed";
    return request === flavor
      ? badExtraSpec(request.key, request.value, allowed)
      : badImageProperty(request.key, request.value, allowed);
  }
  if (read.value === "prefer") return null;
  const where = inNodes ? draft : draft.group("");
  const said = saidOfTrait(asked);
  if (said && request) {
    const allowed = `left out, because ${request.key} is given`;
    if (said.ofImage)
      return flavor
        ? contradiction(flavor, said, "only one of the two may set the use of CPU threads")
        : badImageProperty(said.key, said.value, allowed);
    return badExtraSpec(said.key, said.value, allowed);
  }
  where[read.value === "isolate" ? "forbidden" : "required"].add(trait(HYPERTHREADING));
  return null;
}

function saidOfTrait({ flavor, imageProperties }: Asked) {
  const key = `trait:${HYPERTHREADING}`;
  const ofFlavor = flavor.extraSpecs[key];
  if (ofFlavor !== undefined) return { key, value: ofFlavor, ofImage: false };
  const ofImage = imageProperties[key];
  return ofImage === undefined ? null : { key, value: ofImage, ofImage: true };
}
