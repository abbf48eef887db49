import { countedAmounts } from "../../../../core/stores/api/counted-amounts.ts";
import { amountsOf } from "../../../../core/stores/api/quota-limits.ts";
import { callerOf, type KnownCall } from "../../http/call.ts";
import { unavailable } from "../../http/fault.ts";
import { overQuota, overUnifiedLimit } from "../quotas/over-quota.ts";
import { findTarget, wrongState } from "../server-actions/action-target.ts";
import { serverNotFound } from "../servers/request-finder.ts";
import { refuseLocked } from "../servers/server-lock.ts";
import type { SoftDeleter } from "./soft-deleter.ts";

/**
 * Restores a server that is deleted softly, and has it run. Refuses a server that is not, and one that exceeds a quota by now. Source: `restore` of
 * Nova's compute API.
 */
export async function restoreServer(
  deps: Parameters<typeof findTarget>[0] & { readonly softDeleter: SoftDeleter | null },
  call: KnownCall,
  {
    id,
    action,
    carrier,
  }: { readonly id: string; readonly action: string; readonly carrier: Readonly<Record<string, string>> },
): Promise<void> {
  const { softDeleter } = deps;
  if (softDeleter === null) throw unavailable("This process restores no servers.");
  const record = await deps.finder.find(id, call);
  if (record === null || record.state === "deleted") throw serverNotFound(id);
  refuseLocked({ uuid: record.serverUuid, lock: record.changes?.lock ?? null }, action, call);
  const outcome = record.softlyDeleted
    ? await softDeleter.restore(record, callerOf(call), carrier)
    : ({ kind: "not-deleted" } as const);
  switch (outcome.kind) {
    case "restoring":
      return;
    case "over-quota":
      throw softDeleter.isUnified
        ? overUnifiedLimit(outcome.excess, countedAmounts(record.spec), record.spec.projectId)
        : overQuota(outcome.excess, amountsOf(record.spec.flavor));
    case "not-deleted": {
      const { server } = await findTarget(deps, call, { id, action });
      throw wrongState({ action, uuid: server.uuid }, server.status);
    }
    default:
      outcome satisfies never;
  }
}
