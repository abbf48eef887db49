import type { Holding } from "../../../core/cell/operation-store.ts";
import type { Server, ServerStatus } from "../../../core/cell/server.ts";
import type { Shortfall } from "../../../core/ledger/allocation-change.ts";
import type { AllocationItem } from "../../../core/ledger/model.ts";
import { patchChange } from "../../../core/tasks/patch-change.ts";
import { type HomeMapping, homeMapping } from "../../../core/tasks/port-change.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CellAnswer } from "../cells/cell-client.ts";
import { conflict, unavailable } from "../http/fault.ts";
import { type ActionTarget, busy, wrongState } from "../server-actions/action-target.ts";
import { serverNotFound } from "../servers/find-server.ts";

/** Source: check_instance_state of attach_interface and detach_interface in nova's compute API. */
const ALLOWED_FROM: readonly ServerStatus[] = ["ACTIVE", "PAUSED", "SHUTOFF"];
/** Reads of a server that changes each time. */
const TRIES_MAX = 10;

/** The server as its cell has it, with what it holds and where each of its request groups is served. */
export interface ServedServer {
  readonly server: Server;
  readonly host: string;
  readonly holding: Holding;
  readonly mapping: HomeMapping;
}

/** What a server is to be, and to hold more or less. */
export interface ServerPatch {
  readonly spec: ServerSpec;
  readonly more: readonly AllocationItem[];
  readonly less: readonly AllocationItem[];
}

/** `again`: what it had no room for is known now; plan anew. */
export type Planned = ServerPatch | "again";

/**
 * Changes what a server is and holds where it is, in one transaction of its cell, guarded by the generation of what it holds and by the
 * server's revision: whoever came between makes this look again. Refuses a server in another state, or with something under way.
 * Cost: three questions to the cell, and the write.
 */
export async function patchServer(
  target: ActionTarget,
  plan: (served: ServedServer, lacking: readonly Shortfall[]) => Promise<Planned>,
): Promise<void> {
  const { action, cell } = target;
  const { uuid } = target.server;
  let lacking: readonly Shortfall[] = [];
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const served = await readServed(target);
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
  throw conflict(`Instance ${uuid} changes all the time; try again.`);
}

async function readServed(target: ActionTarget): Promise<ServedServer> {
  const { action, cell } = target;
  const { uuid } = target.server;
  // The server first: whoever changes it afterwards raises its revision.
  const server = answered(target, await cell.server(uuid));
  if (server === null || server.status === "DELETED") throw serverNotFound(uuid);
  if (server.taskState !== null) throw busy({ action, uuid }, server.taskState);
  const { host, attemptId } = server;
  if (!ALLOWED_FROM.includes(server.status) || host === null || attemptId === null)
    throw wrongState({ action, uuid }, server.status);
  const [held, claimed] = await Promise.all([cell.holding(uuid), cell.claimed(attemptId)]);
  const holding = answered(target, held);
  if (holding === null) throw conflict(`Cannot '${action}' instance ${uuid}: it holds nothing.`);
  return { server, host, holding, mapping: homeMapping(server.spec, answered(target, claimed)) };
}

function answered<Value>({ cell }: ActionTarget, answer: CellAnswer<Value>): Value {
  if (answer.kind === "answer") return answer.value;
  throw unavailable(`Cell ${cell.name}, where the server lives, does not answer.`);
}
