import { guestInterfaces } from "../../../../core/tasks/port-change.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { ASKS_NOTHING } from "../../cells/console-question.ts";

/**
 * - `done`: the guest has exactly these interfaces, or gets them at its next start, or there is no guest, or its driver gives guests no interfaces.
 * - `refused`: the host says that it could not change them. The guest may have any of the old and the new ones.
 * - `silent`: nobody knows, since the host did not answer.
 */
export type Aligned =
  | { readonly kind: "done" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "silent" };

/** Lets the server's host give the guest the interfaces of these ports, and no others. The host refuses them if it has heard of a later revision. */
export async function alignInterfaces(
  cell: Pick<CellClient, "console">,
  { uuid: serverUuid, host, attemptId, revision }: Pick<Server, "uuid" | "host" | "attemptId" | "revision">,
  ports: readonly ServerPort[],
): Promise<Aligned> {
  if (host === null || attemptId === null) return { kind: "done" };
  const guest = { host, serverUuid, attemptId };
  const answer = await cell.console({ ...ASKS_NOTHING, ...guest, interfaces: guestInterfaces(ports), revision });
  switch (answer.$case) {
    case "interfacesSet":
    case "unavailable":
    case "absent":
    // A conductor of an older version reads the console. Its hosts change no interfaces.
    case "output":
      return { kind: "done" };
    case "interfacesRefused":
      return { kind: "refused", reason: answer.value };
    default:
      return { kind: "silent" };
  }
}
