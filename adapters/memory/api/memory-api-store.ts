import type { AuditedRequest } from "../../../core/audit/facts.ts";
import { compare } from "../../../core/ledger/ledger-state.ts";
import type {
  AcceptLimits,
  AcceptOutcome,
  ApiStore,
  AssignCell,
  AssignOutcome,
  CellRecord,
  Deletion,
  FlavorRecord,
  OpenRequest,
  PlaceableRequest,
  PutOff,
  RequestFailure,
  RequestQuery,
  RequestRecord,
  RequestScan,
  RequestStretch,
  SpecLimits,
  SweepQuery,
} from "../../../core/stores/api/api-store.ts";
import { nextAssignment } from "../../../core/stores/api/next-assignment.ts";
import { changedSpec, type UserChanges } from "../../../core/tasks/user-changes.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { isAfter, isListedRequest, REQUEST_ORDERS } from "./listed-requests.ts";
import { MemoryQuotaStore } from "./memory-quota-store.ts";
import { PutOffs } from "./put-offs.ts";

/** The in-process twin of the API database. Every call is one step. The rows live as long as this object. */
export class MemoryApiStore implements ApiStore {
  readonly #clock: Clock;
  readonly #cells = new Map<string, CellRecord>();
  readonly #flavors = new Map<string, FlavorRecord>();
  readonly #flavorProjects = new Map<string, Set<string>>();
  readonly #requests = new Map<string, RequestRecord>();
  readonly #arrived = new Set<string>();
  readonly #putOffs = new PutOffs();
  readonly #quotas: MemoryQuotaStore;

  /** `quotas` are the tables of quotas in the same database. */
  constructor(deps: { readonly clock: Clock; readonly quotas?: MemoryQuotaStore }) {
    this.#clock = deps.clock;
    this.#quotas = deps.quotas ?? new MemoryQuotaStore(deps);
  }

  async cells(): Promise<readonly CellRecord[]> {
    return [...this.#cells.values()].sort((a, b) => compare(a.name, b.name));
  }

  async putCell(cell: CellRecord): Promise<void> {
    this.#cells.set(cell.name, cell);
  }

  async flavors(order?: "creation"): Promise<readonly FlavorRecord[]> {
    if (order === "creation") return [...this.#flavors.values()];
    return [...this.#flavors.values()].sort((a, b) => compare(a.id, b.id));
  }

  async flavor(id: string): Promise<FlavorRecord | null> {
    return this.#flavors.get(id) ?? null;
  }

  async createFlavor(flavor: FlavorRecord): Promise<"created" | "id-taken" | "name-taken"> {
    if (this.#flavors.has(flavor.id)) return "id-taken";
    for (const other of this.#flavors.values()) if (other.name === flavor.name) return "name-taken";
    this.#flavors.set(flavor.id, flavor);
    return "created";
  }

  async deleteFlavor(id: string): Promise<boolean> {
    this.#flavorProjects.delete(id);
    return this.#flavors.delete(id);
  }

  async describeFlavor(id: string, description: string | null): Promise<boolean> {
    const flavor = this.#flavors.get(id);
    if (flavor !== undefined) this.#flavors.set(id, { ...flavor, description });
    return flavor !== undefined;
  }

  async flavorProjects(flavorId: string): Promise<readonly string[]> {
    return [...(this.#flavorProjects.get(flavorId) ?? [])].sort(compare);
  }

  async flavorsOfProject(projectId: string): Promise<readonly string[]> {
    return [...this.#flavorProjects].flatMap(([flavor, projects]) => (projects.has(projectId) ? [flavor] : []));
  }

  async addFlavorProject(flavorId: string, projectId: string): Promise<"added" | "exists" | "unknown"> {
    if (!this.#flavors.has(flavorId)) return "unknown";
    const projects = this.#flavorProjects.get(flavorId) ?? new Set();
    if (projects.has(projectId)) return "exists";
    this.#flavorProjects.set(flavorId, projects.add(projectId));
    return "added";
  }

  async removeFlavorProject(flavorId: string, projectId: string): Promise<boolean> {
    return this.#flavorProjects.get(flavorId)?.delete(projectId) ?? false;
  }

  async updateExtraSpecs(
    flavorId: string,
    update: (extraSpecs: Readonly<Record<string, string>>) => Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>> | null> {
    const flavor = this.#flavors.get(flavorId);
    if (flavor === undefined) return null;
    const extraSpecs = { ...update({ ...flavor.extraSpecs }) };
    this.#flavors.set(flavorId, { ...flavor, extraSpecs });
    return extraSpecs;
  }

  async accept(specs: readonly ServerSpec[]): Promise<void> {
    const nowMs = this.#clock.now();
    for (const spec of specs) {
      if (this.#requests.has(spec.uuid)) continue;
      const { uuid: serverUuid, createdAtMs } = spec;
      const record: RequestRecord = {
        serverUuid,
        state: "accepted",
        cell: null,
        assignment: 0,
        spec,
        changes: spec.tags.length === 0 ? null : { tags: spec.tags },
        fault: null,
        cancellation: null,
        createdAtMs,
        updatedAtMs: nowMs,
        softlyDeleted: false,
      };
      this.#requests.set(serverUuid, record);
      this.#putOffs.begin(serverUuid, nowMs);
      this.#quotas.add(spec);
    }
  }

  async acceptWithin(
    calls: readonly (readonly ServerSpec[])[],
    { openMax, quotas, stated }: AcceptLimits,
  ): Promise<readonly AcceptOutcome[]> {
    return calls.map((specs): AcceptOutcome => {
      const [first] = specs;
      const known = specs.flatMap(({ uuid }) => this.#requests.get(uuid) ?? []);
      if (known.some(({ spec }) => spec.projectId !== first?.projectId)) return { kind: "closed" };
      if (first === undefined || known.length > 0) return { kind: "accepted" };
      const excess = quotas === null ? null : this.#quotas.excessOf(specs, quotas, stated?.get(first.projectId));
      if (excess !== null) return { kind: "over-quota", excess };
      const open = [...this.#requests.values()].filter(
        ({ state, spec }) => state === "accepted" && spec.projectId === first.projectId,
      ).length;
      if (openMax !== null && open + specs.length > openMax) return { kind: "over-limit", open };
      void this.accept(specs);
      return { kind: "accepted" };
    });
  }

  async requests(serverUuids: readonly string[]): Promise<readonly RequestRecord[]> {
    return serverUuids.map((uuid) => this.#requests.get(uuid)).filter((record) => record !== undefined);
  }

  async changesOf(serverUuids: readonly string[]): Promise<ReadonlyMap<string, UserChanges>> {
    const changed = await this.requests(serverUuids);
    return new Map(changed.flatMap(({ serverUuid, changes }) => (changes === null ? [] : [[serverUuid, changes]])));
  }

  async listRequests(query: RequestQuery): Promise<readonly RequestRecord[]> {
    const marker = query.marker === null ? null : this.#requests.get(query.marker);
    if (marker === undefined) return [];
    const inOrder = REQUEST_ORDERS[query.order ?? "newest-first"];
    const isOpen = (record: RequestRecord) =>
      query.open !== true ||
      (isBeingPlaced(record) && !this.#arrived.has(record.serverUuid)) ||
      (query.failed === true && record.fault !== null);
    return [...this.#requests.values()]
      .filter(isOpen)
      .filter((record) => isListedRequest(record, query) && (marker === null || inOrder(marker, record) < 0))
      .filter((record) => query.after == null || isAfter(query.order, query.after, record))
      .sort(inOrder)
      .slice(0, query.limit);
  }

  async scanRequests({ rows, created, named, ...query }: RequestScan): Promise<RequestStretch> {
    const marker = query.marker === null ? null : this.#requests.get(query.marker);
    if (marker === undefined) return { records: [], resumeAt: null };
    const inOrder = REQUEST_ORDERS[query.order ?? "newest-first"];
    const after = [...this.#requests.values()]
      .filter((record) => record.state !== "deleted")
      .filter((record) => query.projectId === null || record.spec.projectId === query.projectId)
      .filter(({ createdAtMs: atMs }) => created === undefined || (atMs >= created.fromMs && atMs < created.beforeMs))
      .filter((record) => marker === null || inOrder(marker, record) < 0)
      .filter((record) => query.after == null || isAfter(query.order, query.after, record))
      .sort(inOrder)
      .slice(0, rows);
    const listed = after.filter((record) => isListedRequest(record, { ...query, nameContains: named?.contains ?? "" }));
    const records = listed.slice(0, named?.limit);
    const last = records.length === named?.limit ? records.at(-1) : after.length < rows ? undefined : after.at(-1);
    return { records, resumeAt: last?.serverUuid ?? null };
  }

  async isRareName(nameContains: string): Promise<boolean> {
    const names = [...this.#requests.values()].filter((record) => record.spec.name.includes(nameContains));
    return names.length * 100 < this.#requests.size;
  }

  async assignCells(assignments: readonly AssignCell[]): Promise<readonly AssignOutcome[]> {
    return assignments.map((assign) => {
      const { serverUuid, from, to, assignment = 0 } = assign;
      const record = this.#requests.get(serverUuid);
      if (record === undefined || !isBeingPlaced(record)) return { kind: "ended" };
      if (record.cell !== from || record.assignment !== assignment) {
        return { kind: "moved", cell: record.cell, assignment: record.assignment };
      }
      this.#write(record, { state: "dispatched", cell: to, assignment: nextAssignment(assign) });
      if (to !== from) this.#arrived.delete(serverUuid);
      return { kind: "assigned" };
    });
  }

  async failRequests(failures: readonly RequestFailure[]): Promise<void> {
    for (const { serverUuid, cell, assignment = 0, fault } of failures) {
      const record = this.#requests.get(serverUuid);
      if (record === undefined || !isBeingPlaced(record)) continue;
      if (record.cell !== cell || record.assignment !== assignment) continue;
      this.#write(record, { state: "failed", fault });
    }
  }

  async cancel(serverUuid: string, requestId: string): Promise<RequestRecord | null> {
    const record = this.#requests.get(serverUuid);
    if (record === undefined || record.state === "deleted") return null;
    if (record.state === "cancelled") return record;
    this.#quotas.remove(serverUuid);
    return this.#write(record, {
      softlyDeleted: false,
      state: record.state === "failed" ? "deleted" : "cancelled",
      cancellation: { requestId, atMs: this.#clock.now() },
    });
  }

  /** Marks a server as deleted softly, or takes the mark away. Returns false when it is in no cell, or is so already. */
  markSoftlyDeleted(serverUuid: string, softlyDeleted: boolean): boolean {
    const record = this.#requests.get(serverUuid);
    if (record?.state !== "dispatched" || record.softlyDeleted === softlyDeleted) return false;
    this.#write(record, { softlyDeleted });
    return true;
  }

  async changeServer(
    serverUuid: string,
    update: (current: RequestRecord) => UserChanges | null,
  ): Promise<RequestRecord | null> {
    const record = this.#requests.get(serverUuid);
    if (record === undefined) return null;
    const changes = update(record);
    if (changes === null) return record;
    const changed = { ...record, changes, spec: changedSpec(record.spec, changes) };
    this.#requests.set(serverUuid, changed);
    return changed;
  }

  async markDeleted(deletions: readonly Deletion[]): Promise<void> {
    for (const { cell, serverUuid } of deletions) {
      const record = this.#requests.get(serverUuid);
      if (record?.state === "cancelled" && (record.cell === null || record.cell === cell))
        this.#write(record, { state: "deleted" });
    }
  }

  async placeable(
    serverUuids: readonly string[],
    { specBytesMax, pageBytesMax }: SpecLimits,
  ): Promise<{ readonly found: readonly PlaceableRequest[]; readonly left: readonly string[] }> {
    const found: PlaceableRequest[] = [];
    const left: string[] = [];
    let pageBytes = 0;
    for (const uuid of new Set(serverUuids)) {
      const record = this.#requests.get(uuid);
      if (record === undefined) continue;
      const { serverUuid, state, cell, assignment } = record;
      const specBytes = ServerSpec.encode(record.spec).finish().length;
      const { times: putOffs, acceptedAtMs } = this.#putOffs.of(uuid);
      const ageMs = this.#clock.now() - acceptedAtMs;
      const isRead = specBytes <= specBytesMax;
      if (isRead) pageBytes += specBytes;
      if (isRead && pageBytes > pageBytesMax) left.push(uuid);
      else
        found.push({
          serverUuid,
          state,
          cell,
          assignment,
          spec: isRead ? record.spec : null,
          specBytes,
          putOffs,
          ageMs,
        });
    }
    return { found, left };
  }

  async putOff(putOffs: readonly PutOff[]): Promise<void> {
    for (const { serverUuid, delayMs } of putOffs) {
      const record = this.#requests.get(serverUuid);
      if (record === undefined || !isBeingPlaced(record) || this.#arrived.has(serverUuid)) continue;
      this.#putOffs.putOff(serverUuid, this.#clock.now() + delayMs);
    }
  }

  async stale(
    untouchedMs: number,
    limit: number,
    { placing = "all", exceptCells = [] }: SweepQuery = {},
  ): Promise<readonly OpenRequest[]> {
    const nowMs = this.#clock.now();
    const isDue = ({ serverUuid, state, updatedAtMs }: RequestRecord): boolean => {
      const untouchedAtMs = state === "dispatched" ? Number.POSITIVE_INFINITY : updatedAtMs + untouchedMs;
      const { retryAtMs } = this.#putOffs.of(serverUuid);
      return (state === "cancelled" ? untouchedAtMs : (retryAtMs ?? untouchedAtMs)) <= nowMs;
    };
    const isAsked = ({ serverUuid }: RequestRecord): boolean =>
      placing === "all" || (placing === "put-off" && this.#putOffs.of(serverUuid).times > 0);
    return [...this.#requests.values()]
      .filter((record) => record.state === "cancelled" || (isBeingPlaced(record) && isAsked(record)))
      .filter((record) => record.state !== "dispatched" || !this.#arrived.has(record.serverUuid))
      .filter((record) => isDue(record) && (record.cell === null || !exceptCells.includes(record.cell)))
      .sort((a, b) => a.updatedAtMs - b.updatedAtMs || compare(a.serverUuid, b.serverUuid))
      .slice(0, limit)
      .map((record) => {
        this.#putOffs.handOut(record.serverUuid, nowMs + untouchedMs);
        const { serverUuid, state, cell } = this.#write(record, {});
        return { serverUuid, state, cell };
      });
  }

  async unarrived(cell: string, untouchedMs: number, limit: number): Promise<readonly OpenRequest[]> {
    return this.#unarrived(this.#requests.values(), cell, untouchedMs)
      .sort((a, b) => a.updatedAtMs - b.updatedAtMs || compare(a.serverUuid, b.serverUuid))
      .slice(0, limit);
  }

  async markArrived(cell: string, serverUuids: readonly string[]): Promise<void> {
    for (const uuid of serverUuids) {
      const record = this.#requests.get(uuid);
      if (record?.state === "dispatched" && record.cell === cell) this.#arrived.add(uuid);
    }
  }

  async takeLost(cell: string, serverUuids: readonly string[], untouchedMs: number): Promise<readonly string[]> {
    const named = [...new Set(serverUuids)].map((uuid) => this.#requests.get(uuid)).filter((one) => one !== undefined);
    return this.#unarrived(named, cell, untouchedMs).map((record) => {
      this.#putOffs.handOut(record.serverUuid, this.#clock.now());
      return this.#write(record, {}).serverUuid;
    });
  }

  #unarrived(records: Iterable<RequestRecord>, cell: string, untouchedMs: number): RequestRecord[] {
    const touchedBeforeMs = this.#clock.now() - untouchedMs;
    return [...records].filter(
      (record) =>
        record.state === "dispatched" &&
        record.cell === cell &&
        record.updatedAtMs <= touchedBeforeMs &&
        !this.#arrived.has(record.serverUuid),
    );
  }

  /** The facts about requests that an audit checks, as they are now. */
  auditedRequests(): AuditedRequest[] {
    const nowMs = this.#clock.now();
    return Array.from(
      this.#requests.values(),
      ({ serverUuid, state, cell, createdAtMs, updatedAtMs, cancellation }) => ({
        ...{ serverUuid, state, cell },
        untouchedMs: nowMs - updatedAtMs,
        pendingMs: nowMs - (cancellation?.atMs ?? createdAtMs),
      }),
    );
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}

  #write(
    record: RequestRecord,
    change: Partial<Pick<RequestRecord, "state" | "cell" | "assignment" | "fault" | "cancellation" | "softlyDeleted">>,
  ): RequestRecord {
    const written: RequestRecord = { ...record, ...change, updatedAtMs: this.#clock.now() };
    this.#requests.set(record.serverUuid, written);
    return written;
  }
}

function isBeingPlaced({ state }: RequestRecord): boolean {
  return state === "accepted" || state === "dispatched";
}
