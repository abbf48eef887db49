import type { Shortfall } from "../../../../core/ledger/allocation-change.ts";
import type { Holding } from "../../../../core/ledger/holding.ts";
import type { AllocationItem } from "../../../../core/ledger/model.ts";
import { patchChange } from "../../../../core/tasks/patch-change.ts";
import { type HomeMapping, homeMapping } from "../../../../core/tasks/port-change.ts";
import type { Server, ServerStatus } from "../../../../core/tasks/server.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { CellAnswer } from "../../cells/cell-client.ts";
import { conflict, unavailable } from "../../http/fault.ts";
import { type ActionTarget, busy, wrongState } from "../server-actions/action-target.ts";
import { serverNotFound } from "../servers/request-finder.ts";

/** Source: check_instance_state of attach_interface and detach_interface in nova's compute API. */
export const PORTS_CHANGE_IN: readonly ServerStatus[] = ["ACTIVE", "PAUSED", "SHUTOFF"];
/** Maximum number of reads of a server that changes each time. */
const TRIES_MAX = 10;
/** The allocations of a server that is shelved and offloaded. */
const NOTHING_HELD = { generation: null, items: [] } as const;

/** A server in its cell, with its allocations and the providers of its request groups. */
export interface ServedServer {
  readonly server: Server;
  /** Empty for a server that is shelved and offloaded. */
  readonly host: string;
  readonly holding: Holding | typeof NOTHING_HELD;
  readonly mapping: HomeMapping;
}

/** A changed spec, with the resulting change of the server's allocations. */
export interface ServerPatch {
  readonly spec: ServerSpec;
  readonly more: readonly AllocationItem[];
  readonly less: readonly AllocationItem[];
}

/** A patch, or `again` when the plan has to be made once more because a lack of room became known. */
export type Planned = ServerPatch | "again";

/**
 * Changes a server and its allocations on its host in one transaction of its cell. The transaction checks the consumer generation and the
 * server's revision; after a concurrent change, everything is read again. Refuses a server in another state (`from`, null for any), without a host
 * unless it is shelved and offloaded, or with an operation under way.
 *
 * Cost: three questions to the cell, and the write.
 */
export async function patchServer(
  target: ActionTarget,
  plan: (served: ServedServer, lacking: readonly Shortfall[]) => Promise<Planned>,
  from: readonly ServerStatus[] | null = PORTS_CHANGE_IN,
): Promise<void> {
  const { action, cell } = target;
  const { uuid } = target.server;
  let lacking: readonly Shortfall[] = [];
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const served = await readServed(target, from);
    const patch = await plan(served, lacking);
    if (patch === "again") continue;
    const change = patchChange(served.server.spec, served.holding, patch);
    const { revision } = served.server;
    const write = { serverUuid: uuid, revision, change, spec: patch.spec };
    const [outcome] = answered(target, await cell.operations((store) => store.patchHoldings([write])));
    switch (outcome?.kind) {
      case "patched":
        return;
      case "busy":
        throw busy({ action, uuid }, outcome.running);
      case "gone":
        throw serverNotFound(uuid);
      case "no-capacity":
        lacking = [...lacking, ...outcome.shortfalls];
        break;
      case "changed":
      case "stale":
      case undefined:
        break;
      default:
        outcome satisfies never;
    }
  }
  throw conflict(`Instance ${uuid} kept changing; try again.`);
}

/** Refuses a server in a status in which its ports cannot change (409), before the port that was named is looked for, as Nova does. */
export function requirePortsChange({ action, server: { uuid, status } }: ActionTarget): void {
  if (!PORTS_CHANGE_IN.includes(status)) throw wrongState({ action, uuid }, status);
}

/** Reads a server whose ports may be changed. Refuses one in another state, without a host, or with an operation under way. */
export async function readServed(
  target: ActionTarget,
  from: readonly ServerStatus[] | null = PORTS_CHANGE_IN,
): Promise<ServedServer> {
  const { action, cell } = target;
  const { uuid } = target.server;
  // The server is read first, because every later change raises its revision.
  const server = answered(target, await cell.server(uuid));
  if (server === null || server.status === "DELETED") throw serverNotFound(uuid);
  if (server.taskState !== null) throw busy({ action, uuid }, server.taskState);
  const { host, attemptId } = server;
  if (from === null && host === null && server.status === "SHELVED_OFFLOADED")
    return { server, host: "", holding: NOTHING_HELD, mapping: {} };
  if (from?.includes(server.status) === false || host === null || attemptId === null)
    throw wrongState({ action, uuid }, server.status);
  const [held, claimed] = await Promise.all([cell.holding(uuid), cell.claimed(attemptId)]);
  const holding = answered(target, held);
  if (holding === null) throw conflict(`Cannot '${action}' instance ${uuid}: it has no allocations.`);
  return { server, host, holding, mapping: homeMapping(server.spec, answered(target, claimed)) };
}

function answered<Value>({ cell }: ActionTarget, answer: CellAnswer<Value>): Value {
  if (answer.kind === "answer") return answer.value;
  throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
}
