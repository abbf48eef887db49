import { isAfter, isListedRequest, REQUEST_ORDERS } from "../../adapters/memory/api/listed-requests.ts";
import type { CellState, ServerRow } from "../../adapters/memory/cell/cell-state.ts";
import {
  attributeValues,
  serverSketches,
  serversByAttribute,
  serversByStatus,
} from "../../adapters/memory/cell/memory-server-reads.ts";
import type { RequestQuery, RequestRecord, RequestScan } from "../../core/stores/api/api-store.ts";
import type { StatusQuery } from "../../core/stores/cell/cell-store.ts";
import type { AttributeQuery, SketchQuery, ValuesQuery } from "../../core/stores/cell/listed-servers.ts";
import { listPlaceOf } from "../../services/api/compute/servers/list-order.ts";
import { readListQuery } from "../../services/api/compute/servers/list-query.ts";
import { type ListServersDeps, listServers } from "../../services/api/compute/servers/list-servers.ts";
import type { KnownCall } from "../../services/api/http/call.ts";

/** A server of a cloud for lists: its request, and a row in each cell that has or had it. */
export interface ListedServer {
  readonly request: RequestRecord;
  /** The request may be in no cell. */
  readonly isOpen: boolean;
  readonly rows: Readonly<Record<string, ServerRow>>;
}

/** Hosts whose names begin with "edge" are in a zone of that name. */
const EDGE_HOSTS = ["edge-1", "edge-2"];
const ZONES = {
  defaultZone: "nova",
  byHost: new Map(EDGE_HOSTS.map((host) => [host, "edge"])),
  of: (host: string) => (EDGE_HOSTS.includes(host) ? "edge" : "nova"),
};
const CALL = { identity: { isAdmin: true, projectId: "p" }, policy: null, minor: 90 } as unknown as KnownCall;

/** Lists the servers of a cloud of cells in memory. Each question is answered with the servers as they are when it is asked. */
export class ListedCloud {
  servers: readonly ListedServer[];
  /** Cells that do not answer. */
  silent: readonly string[] = [];
  /** Cells tell no sketches, so that the servers of every list are read whole before they are sorted. */
  isPlain = false;
  /** How often cells have told sketches. */
  sketched = 0;
  /** Called before a question is answered. */
  before: (question: "open" | "failed" | "sketches" | "changes" | "requests" | "servers") => void = () => {};
  readonly #deps: ListServersDeps;

  constructor(servers: readonly ListedServer[]) {
    this.servers = servers;
    const requestOf = (uuid: string) => this.servers.find(({ request }) => request.serverUuid === uuid)?.request;
    const requests = (uuids: readonly string[]) => uuids.map(requestOf).filter((one) => one !== undefined);
    this.#deps = {
      store: {
        requests: async (uuids: readonly string[]) => {
          this.before("requests");
          return requests(uuids);
        },
        changesOf: async (uuids: readonly string[]) => {
          this.before("changes");
          const all = requests(uuids).map(({ serverUuid, changes }) => [serverUuid, changes] as const);
          return new Map(all.filter(([, changes]) => changes !== null));
        },
        listRequests: async (query: RequestQuery) => this.#listRequests(query),
        scanRequests: async ({ rows, named: _, ...query }: RequestScan) => {
          const records = this.#listRequests({ ...query, limit: rows });
          return { records, resumeAt: records.length < rows ? null : (records.at(-1)?.serverUuid ?? null) };
        },
        isRareName: async () => false,
      },
      clock: { monotonic: () => 0 },
      finder: { find: async (uuid: string) => requestOf(uuid) ?? null },
      cells: new Map(["east", "west"].map((name) => [name, this.#cell(name)])),
      softDeleter: {
        softlyDeleted: async () => {
          const requests = this.servers.map(({ request }) => request).filter(({ softlyDeleted }) => softlyDeleted);
          return requests.map(listPlaceOf);
        },
      },
    } as unknown as ListServersDeps;
  }

  /** Returns the page of a list with these parameters. */
  page(parameters: Readonly<Record<string, string | readonly string[]>>) {
    const query = readListQuery({ all_tenants: "1", ...parameters }, CALL, {
      ...{ pageMax: 1_000, isDetailed: true },
      zones: ZONES,
    });
    return listServers(this.#deps, CALL, query);
  }

  /** Returns all pages of a list, each of which begins after the last server of the one before. */
  async pages(parameters: Readonly<Record<string, string | readonly string[]>>) {
    const pages: Awaited<ReturnType<typeof listServers>>["servers"][] = [];
    for (let marker: string | null = null; ; ) {
      const page = await this.page({ ...parameters, ...(marker !== null && { marker }) });
      pages.push(page.servers);
      marker = page.nextMarker;
      if (marker === null) return pages;
    }
  }

  #listRequests(query: RequestQuery): readonly RequestRecord[] {
    const { order = "newest-first", limit, open, failed } = query;
    const marker = this.servers.find(({ request }) => request.serverUuid === query.marker)?.request;
    if (open || failed) this.before(open ? "open" : "failed");
    return this.servers
      .filter(
        ({ request, isOpen }) =>
          isListedRequest(request, query) && (open !== true || isOpen || (failed === true && request.fault !== null)),
      )
      .map(({ request }) => request)
      .filter((request) => marker === undefined || REQUEST_ORDERS[order](marker, request) < 0)
      .filter((request) => query.after == null || isAfter(order, query.after, request))
      .sort(REQUEST_ORDERS[order])
      .slice(0, limit);
  }

  #cell(name: string) {
    const state = () => {
      const rows = this.servers.flatMap(({ rows }) => rows[name] ?? []);
      return { servers: new Map(rows.map((row) => [row.uuid, row])), tasksByServer: new Map() } as unknown as CellState;
    };
    const store = {
      serversByAttribute: async (query: AttributeQuery) => serversByAttribute(state(), query),
      serversByStatus: async (query: StatusQuery, looksMax: number) => serversByStatus(state(), query, looksMax),
      attributeValues: async (query: ValuesQuery) => attributeValues(state(), query),
      serverSketches: async (query: SketchQuery) => {
        if (this.isPlain) return null;
        this.sketched += 1;
        this.before("sketches");
        return serverSketches(state(), query);
      },
    };
    const answer = async <Value>(question: () => Value | Promise<Value>) =>
      this.silent.includes(name) ? { kind: "unreachable" } : { kind: "answer", value: await question() };
    return {
      name,
      servers: (uuids: readonly string[]) =>
        answer(() => {
          this.before("servers");
          return uuids
            .flatMap((uuid) => state().servers.get(uuid) ?? [])
            .filter(({ status }) => status !== "CLOSED")
            .map((row) => ({ ...row }));
        }),
      server: (uuid: string) =>
        answer(() => {
          const row = state().servers.get(uuid);
          return row === undefined || row.status === "CLOSED" ? null : { ...row };
        }),
      operations: (question: (of: typeof store) => Promise<unknown>) => answer(() => question(store)),
    };
  }
}
