import type { ApiStore, RequestState } from "../../../core/stores/api/api-store.ts";
import type {
  NewServerGroup,
  PinOutcome,
  ServerGroupQuery,
  ServerGroupRecord,
  ServerGroupStore,
} from "../../../core/stores/api/server-group-store.ts";

const GONE: ReadonlySet<RequestState> = new Set(["cancelled", "deleted"]);

interface Member {
  readonly groupUuid: string;
  cell: string | null;
}

/**
 * The in-process twin of the tables of server groups. It works over the store that holds the requests. Calls take effect one after the
 * other.
 */
export class MemoryServerGroupStore implements ServerGroupStore {
  readonly #requests: Pick<ApiStore, "requests">;
  readonly #groups = new Map<string, NewServerGroup>();
  /** By server UUID. */
  readonly #members = new Map<string, Member>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: { readonly requests: Pick<ApiStore, "requests"> }) {
    this.#requests = deps.requests;
  }

  createGroup(group: NewServerGroup, groupsMax: number): Promise<"created" | "too-many"> {
    return this.#step(async () => {
      const ofProject = [...this.#groups.values()].filter((other) => other.projectId === group.projectId);
      if (ofProject.length >= groupsMax) return "too-many";
      this.#groups.set(group.uuid, group);
      return "created";
    });
  }

  groups({ projectId, limit, offset }: ServerGroupQuery): Promise<readonly ServerGroupRecord[]> {
    return this.#step(async () => {
      const found = [...this.#groups.values()].filter((group) => projectId === null || group.projectId === projectId);
      return Promise.all(found.slice(offset, offset + limit).map((group) => this.#recordOf(group)));
    });
  }

  group(uuid: string): Promise<ServerGroupRecord | null> {
    return this.#step(async () => {
      const group = this.#groups.get(uuid);
      return group === undefined ? null : this.#recordOf(group);
    });
  }

  countGroups(projectId: string): Promise<number> {
    return this.#step(async () => [...this.#groups.values()].filter((group) => group.projectId === projectId).length);
  }

  deleteGroup(uuid: string): Promise<boolean> {
    return this.#step(async () => {
      for (const [server, member] of this.#members) if (member.groupUuid === uuid) this.#members.delete(server);
      return this.#groups.delete(uuid);
    });
  }

  addMembers(
    groupUuid: string,
    serverUuids: readonly string[],
    membersMax: number,
  ): Promise<"added" | "unknown" | "too-many"> {
    return this.#step(async () => {
      if (!this.#groups.has(groupUuid)) return "unknown";
      const states = await this.#statesOf(groupUuid);
      const others = [...states].filter(
        ([server, state]) => !serverUuids.includes(server) && (state === null || !GONE.has(state)),
      );
      if (others.length + serverUuids.length > membersMax) return "too-many";
      for (const server of serverUuids) {
        if (!this.#members.has(server)) this.#members.set(server, { groupUuid, cell: null });
      }
      return "added";
    });
  }

  pinCell(pin: {
    readonly groupUuid: string;
    readonly serverUuid: string;
    readonly cell: string;
  }): Promise<PinOutcome> {
    return this.#step(async (): Promise<PinOutcome> => {
      const others = [...(await this.#statesOf(pin.groupUuid))].flatMap(([server, state]) => {
        const { cell } = this.#members.get(server) as Member;
        const isThere = state === "accepted" || state === "dispatched";
        return server === pin.serverUuid || cell === null || cell === pin.cell || !isThere ? [] : [{ server, cell }];
      });
      const [cell] = others.map((other) => other.cell).sort();
      if (cell !== undefined) {
        const servers = others.filter((other) => other.cell === cell).map(({ server }) => server);
        return { kind: "elsewhere", cell, servers: servers.sort() };
      }
      const own = this.#members.get(pin.serverUuid);
      if (own !== undefined) own.cell = pin.cell;
      return { kind: "pinned" };
    });
  }

  async unpinServers(groupUuid: string, serverUuids: readonly string[], cell: string): Promise<void> {
    await this.#step(async () => {
      for (const server of serverUuids) {
        const member = this.#members.get(server);
        if (member?.groupUuid === groupUuid && member.cell === cell) member.cell = null;
      }
    });
  }

  async #recordOf(group: NewServerGroup): Promise<ServerGroupRecord> {
    const states = await this.#statesOf(group.uuid);
    const members = [...states].flatMap(([server, state]) => (state === null || GONE.has(state) ? [] : [server]));
    return { ...group, members: members.sort() };
  }

  /** The state of each member's request, by server UUID. Null for a server that was not accepted. */
  async #statesOf(groupUuid: string): Promise<ReadonlyMap<string, RequestState | null>> {
    const servers = [...this.#members].flatMap(([server, member]) => (member.groupUuid === groupUuid ? [server] : []));
    const states = new Map<string, RequestState | null>(servers.map((server) => [server, null]));
    for (const record of await this.#requests.requests(servers)) states.set(record.serverUuid, record.state);
    return states;
  }

  #step<Result>(run: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(run);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}
