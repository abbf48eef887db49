import { devicesWanted, PCI_ALIAS_SPEC } from "../../filters/pci-passthrough-filter.ts";
import type { Asked } from "../asked.ts";
import { tieToNode } from "../pci-affinity.ts";
import type { QueryDraft } from "../query-draft.ts";
import type { RequestContext } from "../request-context.ts";
import { badExtraSpec, type RequestRefusal } from "../request-refusal.ts";

/** Devices of one server: each is a request group, and groups have to be combined. */
const DEVICES_MAX = 32;

/**
 * `pci_passthrough:alias` (`gpu:1,nic:2`): a group for each device, of its alias's class, so that it is claimed like everything
 * else; with `hw:pci_numa_affinity_policy=required` at the guest's NUMA node.
 */
export function pciDevices(asked: Asked, draft: QueryDraft, { settings }: RequestContext): RequestRefusal | null {
  const text = asked.flavor.extraSpecs[PCI_ALIAS_SPEC];
  if (text === undefined || text === "") return null;
  const wanted = devicesWanted(text, settings.pciAliases);
  if (wanted === null) return badExtraSpec(PCI_ALIAS_SPEC, text, "aliases with their numbers, as gpu:1,nic:2");
  const suffixes: string[] = [];
  for (const [name, count] of wanted) {
    if (suffixes.length + count > DEVICES_MAX)
      return badExtraSpec(PCI_ALIAS_SPEC, text, `at most ${DEVICES_MAX} devices`);
    // Whoever names the class himself has said already what he wants of it.
    if (draft.names(name)) continue;
    for (let device = 0; device < count; device += 1) {
      const suffix = `_PCI${suffixes.length}`;
      draft.add(suffix, name, 1);
      suffixes.push(suffix);
    }
  }
  // Only these: ports, which are groups by now, too, are served by network agents, not by what is below a NUMA node.
  return tieToNode(asked, draft, suffixes);
}
