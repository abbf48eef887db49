import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import { patchChange } from "../../core/tasks/patch-change.ts";
import { serverId, vcpusOf } from "../contract/cell-fixtures.ts";

/**
 * Plans to attach a port to the server at its present place that takes this many VCPUs, or to release them when the number is negative. The returned
 * function carries the plan out, whatever has become of the server by then. Null when nothing can be planned.
 */
export async function planPatch(
  store: CellStore,
  hosts: readonly { readonly name: string }[],
  { server, vcpus }: { readonly server: number; readonly vcpus: number },
): Promise<(() => Promise<void>) | null> {
  const uuid = serverId(server);
  const [row] = await store.servers([uuid]);
  const [holding] = await store.holdings([uuid]);
  const host = hosts.findIndex((one) => one.name === row?.host);
  if (!row || !holding || host === -1 || row.status === "VERIFY_RESIZE") return null;
  const items = vcpusOf(host, Math.abs(vcpus));
  const [more, less] = vcpus > 0 ? [items, []] : [[], items];
  // A server without an allocation no longer has a home.
  if (holding.items.every((item) => item.amount + vcpus <= 0)) return null;
  const change = patchChange(row.spec, holding, { more, less });
  return async () => {
    await store.patchHoldings([{ serverUuid: uuid, revision: row.revision, change, spec: row.spec }]);
  };
}
