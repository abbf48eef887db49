import type { RequestRecord } from "../../../../core/stores/api/api-store.ts";
import { Batcher } from "../../../../runtime/batcher.ts";
import { type KnownCall, requireRulesFor } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { type Fault, notFound } from "../../http/fault.ts";
import type { RequestsPort } from "../../ports.ts";

/**
 * Finds accepted requests by their server's uuid, for callers who may see them. A request of another project is not found. Questions that
 * arrive at about the same time go as one query.
 */
export class RequestFinder {
  readonly #reads: Batcher<string, RequestRecord | null>;

  constructor(deps: { readonly store: Pick<RequestsPort, "requests"> }) {
    this.#reads = new Batcher({
      run: async (uuids) => {
        const records = await deps.store.requests([...new Set(uuids)]);
        const byUuid = new Map(records.map((record) => [record.serverUuid, record]));
        return uuids.map((uuid) => byUuid.get(uuid) ?? null);
      },
      maxItems: 1000,
      concurrency: 4,
    });
  }

  /**
   * Returns null when the server is unknown or of another project. Finds deleted servers too. Refuses (403) an admin whom the policy does not
   * let use the route for the server's project.
   */
  async find(id: string, call: KnownCall): Promise<RequestRecord | null> {
    const uuid = canonicalUuid(id);
    if (uuid === null) return null;
    const record = await this.#reads.submit(uuid);
    const { isAdmin, projectId } = call.identity;
    if (record === null || !(isAdmin || record.spec.projectId === projectId)) return null;
    requireRulesFor(call, record.spec.projectId);
    return record;
  }

  /** Finds a request that is neither cancelled nor deleted. Throws a 404 if there is none, and refuses (403) as `find` does. */
  async findPresent(id: string, call: KnownCall): Promise<RequestRecord> {
    const record = await this.find(id, call);
    if (record === null || record.state === "deleted" || record.state === "cancelled") throw serverNotFound(id);
    return record;
  }
}

export function serverNotFound(id: string): Fault {
  return notFound(`Instance ${id.slice(0, 100)} could not be found.`);
}
