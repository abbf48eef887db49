import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import type { Server } from "../../core/tasks/server.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { type AgentProcess, SmallCell } from "./small-cell.ts";

/** The product's own waits, of a second and more, dominate some of the tests that use this. */
const SPEED = 8;
/** The agent of host 0. */
export const HOST = { id: "agent-0", hosts: [0], conductors: [1, 2] } as const;

type AgentOptions = Parameters<SmallCell["startAgent"]>[0];

export function openCell(): Promise<SmallCell> {
  return new SmallCell({ speed: SPEED }).open();
}

/**
 * Starts a conductor and the agent, and boots server 1 on host 0. A host is down soon after its agent falls silent, unless the conductor's settings say
 * otherwise.
 */
export async function startServer(
  cell: SmallCell,
  options: Partial<AgentOptions>,
  settings: Partial<ConductorSettings> = {},
): Promise<AgentProcess> {
  await cell.startConductor(1, { unseenMs: 500 * SPEED, ...settings });
  const agent = await cell.startAgent({ ...HOST, ...options });
  await cell.hostsUp(1);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  return agent;
}

/** Begins an operation on server 1 and resolves with the server at rest. */
export async function operated(cell: SmallCell, kind: OperationKind, hosts: readonly number[] = []): Promise<Server> {
  await cell.operate({ server: 1, kind, hosts });
  return cell.rest(1);
}
