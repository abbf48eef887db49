import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import { guestFate } from "../../core/tasks/guest-fate.ts";
import type { ModelHost } from "./model-host.ts";

/** Acts as `GuestSettler`: reads the server's row, and returns the order that follows for the guest. Null when the guest is left as it is. */
export async function settlingOrder(
  store: Pick<CellStore, "homes">,
  host: ModelHost,
  attemptId: string,
): Promise<(() => void) | null> {
  const guest = host.guest(attemptId);
  if (guest === undefined || !host.isUp) return null;
  const { serverUuid, state } = guest;
  const [home] = await store.homes([serverUuid]);
  const fate = guestFate({ host: host.name, serverUuid, attemptId, state }, home ?? null);
  if (fate === "leave" || fate === "stop-server") return null;
  if (fate === "destroy") return () => void host.destroy(attemptId, null);
  const revision = home?.revision ?? 0;
  return () => void host.settle(attemptId, fate, revision);
}
