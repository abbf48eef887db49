import { devicesWanted, PCI_ALIAS_SPEC } from "../../filters/pci-passthrough-filter.ts";
import type { Asked } from "../asked.ts";
import type { HostRequestDraft } from "../host-request-draft.ts";
import { tieToNode } from "../pci-affinity.ts";
import type { RequestContext } from "../request-context.ts";
import { badExtraSpec, type RequestRefusal } from "../request-refusal.ts";

/** Maximum number of devices of one server, since each is a request group and groups must be combined. */
const DEVICES_MAX = 32;

/**
 * Adds a group for each device in `pci_passthrough:alias` (`gpu:1,nic:2`), with the alias's class, so that devices are claimed like other
 * resources. With `hw:pci_numa_affinity_policy=required` the groups must be at the guest's NUMA node.
 */
export function pciDevices(asked: Asked, draft: HostRequestDraft, { settings }: RequestContext): RequestRefusal | null {
  const text = asked.flavor.extraSpecs[PCI_ALIAS_SPEC];
  if (text === undefined || text === "") return null;
  const wanted = devicesWanted(text, settings.pciAliases);
  if (wanted === null) return badExtraSpec(PCI_ALIAS_SPEC, text, "aliases with their numbers, like gpu:1,nic:2");
  const suffixes: string[] = [];
  for (const [name, count] of wanted) {
    if (suffixes.length + count > DEVICES_MAX)
      return badExtraSpec(PCI_ALIAS_SPEC, text, `at most ${DEVICES_MAX} devices`);
    // A flavor that names the class explicitly already contains the amount.
    if (draft.names(name)) continue;
    for (let device = 0; device < count; device += 1) {
      const suffix = `_PCI${suffixes.length}`;
      draft.add(suffix, name, 1);
      suffixes.push(suffix);
    }
  }
  // Only these groups are tied to the node. Ports are groups by now, too, but network agents serve them and not providers below a NUMA
  // node.
  return tieToNode(asked, draft, suffixes);
}
