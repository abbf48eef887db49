import { Type } from "typebox";
import type { SyncReport } from "../compute/aggregates/host-syncer.ts";

const Strings = Type.Array(Type.String());

/** The changes of a sync in the cells, host by host. Hosts of cells that did not answer are changed later. */
export const SyncAnswer = Type.Object({
  changed: Type.Array(
    Type.Object({
      cell: Type.String(),
      host: Type.String(),
      aggregates_added: Strings,
      aggregates_removed: Strings,
      /** All ratio overrides of the host after the sync, or null when they were already right. */
      ratios: Type.Unsafe<Record<string, number> | null>({}),
    }),
  ),
  unreachable_cells: Strings,
});

export function syncView({ changed, unreachable }: SyncReport) {
  return {
    changed: changed.map(({ cell, host, mirror, ratios }) => ({
      cell,
      host,
      aggregates_added: [...(mirror?.add ?? [])],
      aggregates_removed: [...(mirror?.remove ?? [])],
      ratios: ratios === null ? null : { ...ratios.ratios },
    })),
    unreachable_cells: [...unreachable],
  };
}
