import type { ServerGroupPolicy } from "./group-rule.ts";

/** A server group as its owner made it; nothing of it ever changes. */
export interface NewServerGroup {
  readonly uuid: string;
  readonly name: string;
  readonly projectId: string;
  readonly userId: string;
  readonly policy: ServerGroupPolicy;
  /** The rule `max_server_per_host` of anti-affinity; null: not given, which is 1. */
  readonly maxServerPerHost: number | null;
}

export interface ServerGroupRecord extends NewServerGroup {
  /** Uuids of its servers that are not deleted, sorted. */
  readonly members: readonly string[];
}

export interface ServerGroupQuery {
  /** Null: of all projects. */
  readonly projectId: string | null;
  readonly limit: number;
  readonly offset: number;
}

/** Where the servers of an affinity group may go. */
export type PinOutcome =
  /** To the cell that was asked for: it is the group's cell as long as the server, or another one of the group, may be there. */
  | { readonly kind: "pinned" }
  /** Others of the group, `servers`, may be in `cell` already. */
  | { readonly kind: "elsewhere"; readonly cell: string; readonly servers: readonly string[] };

/**
 * Server groups in the API database. A member counts as long as its request lives: what was cancelled, deleted or failed is none.
 * Both bodies (Postgres, in-memory) pass test/contract/server-group-store. Operating failures throw the store's error.
 */
export interface ServerGroupStore {
  /** `too-many`: the project has `groupsMax` already. */
  createGroup(group: NewServerGroup, groupsMax: number): Promise<"created" | "too-many">;
  /** Oldest first. */
  groups(query: ServerGroupQuery): Promise<readonly ServerGroupRecord[]>;
  group(uuid: string): Promise<ServerGroupRecord | null>;
  /** Its servers stay, and keep the rule among themselves that they were placed by. False: there is none. */
  deleteGroup(uuid: string): Promise<boolean>;
  /**
   * Makes servers that are about to be accepted members, all or none. Repeatable. `too-many`: it would have more than `membersMax`.
   * A server that is never accepted after all is no member, and forgotten after a while.
   */
  addMembers(
    groupUuid: string,
    serverUuids: readonly string[],
    membersMax: number,
  ): Promise<"added" | "unknown" | "too-many">;
  /**
   * Pins an affinity group to a cell by compare-and-set, before the server is assigned there: of several that ask at once for
   * different cells one gets its own, the others are told which.
   */
  pinCell(pin: { readonly groupUuid: string; readonly serverUuid: string; readonly cell: string }): Promise<PinOutcome>;
  /** Servers that ended in the cell without a home there, and can have none any more: they pin their group no longer. */
  unpinServers(groupUuid: string, serverUuids: readonly string[], cell: string): Promise<void>;
}
