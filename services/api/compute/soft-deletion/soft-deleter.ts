import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import type { MoveStore } from "../../../../core/stores/api/move-store.ts";
import type { QuotaLimits } from "../../../../core/stores/api/quota-limits.ts";
import type {
  RestoreOutcome,
  SoftDeletion,
  SoftDeletionStore,
} from "../../../../core/stores/api/soft-deletion-store.ts";
import type { ListPosition } from "../../../../core/stores/cell/listed-servers.ts";
import { patchChange } from "../../../../core/tasks/patch-change.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import { nextSoftDeletionStep } from "../../../../core/tasks/soft-deletion.ts";
import type { Caller } from "../../../../proto/gen/berth/cell.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { type Cells, hydrateServer } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { conflict } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";
import type { UnifiedLimits } from "../quotas/unified-limits.ts";
import { beginInCell } from "../server-actions/begin-in-cell.ts";
import { cancelServer } from "../servers/cancel-server.ts";
import type { DeletionMarker } from "../servers/deletion-marker.ts";

interface Deps {
  readonly deletions: SoftDeletionStore;
  readonly store: Pick<RequestsPort, "requests" | "cancel">;
  readonly moves: Pick<MoveStore, "waiting"> | null;
  readonly cells: Cells;
  readonly marker: DeletionMarker;
  readonly events: ApiEvents;
  /** Null where Keystone does not have the limits of projects. */
  readonly unified: Pick<UnifiedLimits, "enforced"> | null;
}

type Carrier = Readonly<Record<string, string>>;
/** How often a server is read again that changes while it is deleted. */
const DELETE_TRIES_MAX = 5;

type Kept = SoftDeletion & { readonly aim: "deleted" | "restored" };

/**
 * Deletes servers softly and restores them. The aim is stored first, together with what it means for lists and quotas; the server's cell carries it out
 * afterwards. Every step can be repeated by any api, so a process may die between any two of them: another one continues from the stored aim.
 */
export class SoftDeleter {
  readonly #deps: Deps;
  readonly #keepMs: number;
  readonly #quotas: QuotaLimits | null;

  /** `keepMs`: how long servers that are deleted are kept; 0 deletes them at once. `quotas` are the limits of projects that have none of their own. */
  constructor(deps: Deps, { keepMs, quotas }: { readonly keepMs: number; readonly quotas: QuotaLimits | null }) {
    this.#deps = deps;
    this.#keepMs = keepMs;
    this.#quotas = quotas;
  }

  /**
   * Deletes a server softly. Returns false for one that must be deleted for good: deleted servers are not kept, it never ran, or it has no
   * host, as in Nova. A server whose cell does not answer is kept. Answers 409 for one that is deleted and restored by others all the time.
   */
  async delete(record: RequestRecord, askedBy: Caller, carrier: Carrier): Promise<boolean> {
    const { deletions, store, cells } = this.#deps;
    let now = record;
    for (let tries = 0; tries < DELETE_TRIES_MAX; tries += 1) {
      if (now.softlyDeleted) return true;
      if (this.#keepMs === 0 || now.state !== "dispatched") return false;
      const known = await hydrateServer(now, cells, { withDeleted: true });
      if (known === null || (!known.unreachable && !isKept(known.server))) return false;
      const deletion = await deletions.deleteSoftly(now.serverUuid, askedBy);
      if (deletion !== null) {
        await this.#try(deletion, carrier);
        return true;
      }
      // The request has changed since it was read. Another call may have deleted the server softly, which must not delete it for good.
      const [again] = await store.requests([now.serverUuid]);
      if (again === undefined) return false;
      now = again;
    }
    throw conflict(`Instance ${record.serverUuid} kept changing; try again.`);
  }

  /** Whether Keystone has the limits of projects. */
  get isUnified(): boolean {
    return this.#deps.unified !== null;
  }

  /** Restores a server that is deleted softly. */
  async restore(
    { serverUuid, spec }: Pick<RequestRecord, "serverUuid" | "spec">,
    askedBy: Caller,
    carrier: Carrier,
  ): Promise<RestoreOutcome> {
    const stated = await this.#deps.unified?.enforced(spec.projectId);
    const outcome = await this.#deps.deletions.restore(serverUuid, { askedBy, defaults: this.#quotas, stated });
    if (outcome.kind === "restoring") await this.#try(outcome.deletion, carrier);
    return outcome;
  }

  /** The places of servers that are deleted softly, of the project or (null) of all. */
  softlyDeleted(projectId: string | null, limit: number): Promise<readonly ListPosition[]> {
    return this.#deps.deletions.softlyDeleted(projectId, limit);
  }

  /** Has the servers deleted for good whose time is over, and continues the deletions that are due. Rejects as the API database does. */
  async settle({ untouchedMs, limit }: { readonly untouchedMs: number; readonly limit: number }): Promise<void> {
    const { deletions } = this.#deps;
    if (this.#keepMs > 0) await deletions.reclaim({ olderThanMs: this.#keepMs, limit });
    for (const deletion of await deletions.due(untouchedMs, limit)) await this.#try(deletion, {});
  }

  /** Takes one step. A step that fails is tried again later, since the aim is stored. */
  async #try(deletion: SoftDeletion, carrier: Carrier): Promise<void> {
    try {
      await this.#step(deletion, carrier);
    } catch (error) {
      this.#deps.events.softDeletionDelayed(deletion.serverUuid, error);
    }
  }

  async #step(deletion: SoftDeletion, carrier: Carrier): Promise<void> {
    const { deletions, store, cells, moves } = this.#deps;
    const { serverUuid, aim, askedBy } = deletion;
    const [record] = await store.requests([serverUuid]);
    if (record?.state !== "dispatched") return deletions.settle(deletion);
    if (aim === "reclaimed") {
      await cancelServer(this.#deps, serverUuid, { askedBy, carrier });
      return deletions.settle(deletion);
    }
    // A scheduler may begin a move that it was asked for before.
    if (moves !== null && (await moves.waiting([serverUuid])).length > 0) return;
    const cell = record.cell === null ? undefined : cells.get(record.cell);
    const answer = await cell?.server(serverUuid);
    if (cell === undefined || answer?.kind !== "answer") return;
    await this.#stepIn({ cell, record, server: answer.value }, { ...deletion, aim }, carrier);
  }

  async #stepIn(
    {
      cell,
      record,
      server,
    }: { readonly cell: CellClient; readonly record: RequestRecord; readonly server: Server | null },
    deletion: Kept,
    carrier: Carrier,
  ): Promise<void> {
    const { deletions, events } = this.#deps;
    const { aim, askedBy, tries } = deletion;
    if (server === null || server.launchedAtMs === null) {
      if (aim === "deleted") await deletions.reclaim(deletion);
      else await deletions.settle(deletion);
      return;
    }
    const step = nextSoftDeletionStep(aim, server, tries);
    switch (step.kind) {
      case "wait":
        return;
      case "abandon":
        events.restoreAbandoned(server.uuid);
        return deletions.abandonRestore(deletion);
      case "done":
        if (await outdatePlans(cell, server)) await deletions.settle(deletion);
        return;
      case "begin":
        await beginInCell(
          { events },
          { action: aim === "deleted" ? "delete" : "restore", record, cell, server },
          {
            ...{ kind: step.operation, carrier, askedBy },
            // The aim is compared after the server was read, so an operation for a former aim is refused by the server's revision (`outdatePlans`).
            prepare: async () => {
              if (!(await deletions.noteTry(deletion))) throw new Error("the server has another aim by now");
            },
          },
        );
        return;
      default:
        step satisfies never;
    }
  }
}

/** Whether a server that is deleted is kept. Source: `soft_delete` of Nova's compute API, which needs a server that has run and has a host. */
function isKept({ launchedAtMs, host, status }: Server): boolean {
  return launchedAtMs !== null && host !== null && status !== "DELETED";
}

/**
 * Raises the revision of a server, so that an operation that a slow api has planned for a former aim no longer begins. Returns false when the
 * server has changed. A server on no host needs nothing, because no such operation can begin there.
 */
async function outdatePlans(cell: CellClient, server: Server): Promise<boolean> {
  const { uuid, spec, revision, host } = server;
  if (host === null) return true;
  const held = await cell.holding(uuid);
  if (held.kind !== "answer" || held.value === null) return false;
  const change = patchChange(spec, held.value, { more: [], less: [] });
  const written = await cell.operations((store) => store.patchHoldings([{ serverUuid: uuid, revision, change, spec }]));
  return written.kind === "answer" && written.value[0]?.kind === "patched";
}
