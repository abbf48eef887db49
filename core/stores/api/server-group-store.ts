import type { ServerGroupPolicy } from "../../tasks/group-rule.ts";

/** A server group as its owner created it. It never changes. */
export interface NewServerGroup {
  readonly uuid: string;
  readonly name: string;
  readonly projectId: string;
  readonly userId: string;
  readonly policy: ServerGroupPolicy;
  /** The rule `max_server_per_host` of anti-affinity. Null when it was not given, which means 1. */
  readonly maxServerPerHost: number | null;
}

export interface ServerGroupRecord extends NewServerGroup {
  /** Sorted UUIDs of its servers that are not deleted. */
  readonly members: readonly string[];
}

export interface ServerGroupQuery {
  /** Null selects the groups of all projects. */
  readonly projectId: string | null;
  readonly limit: number;
  readonly offset: number;
}

/** The cell to which the servers of an affinity group may go. */
export type PinOutcome =
  /**
   * The servers may go to the requested cell. It stays the group's cell as long as this server or another one of the group may be there.
   */
  | { readonly kind: "pinned" }
  /** Other servers of the group, listed in `servers`, may already be in `cell`. */
  | { readonly kind: "elsewhere"; readonly cell: string; readonly servers: readonly string[] };

/**
 * Server groups in the API database. A server is a member as long as its request is neither cancelled, deleted nor failed. Both
 * implementations (Postgres, in-memory) pass test/contract/server-group-store. Operating failures throw the store's error.
 */
export interface ServerGroupStore {
  /** `too-many` means that the project already has `groupsMax` groups. */
  createGroup(group: NewServerGroup, groupsMax: number): Promise<"created" | "too-many">;
  /** Groups, oldest first. */
  groups(query: ServerGroupQuery): Promise<readonly ServerGroupRecord[]>;
  group(uuid: string): Promise<ServerGroupRecord | null>;
  /** How many groups the project has. */
  countGroups(projectId: string): Promise<number>;
  /**
   * Deletes the group but not its servers, which keep the policy under which they were placed. Returns false when there is no such group.
   */
  deleteGroup(uuid: string): Promise<boolean>;
  /**
   * Makes servers that are about to be accepted members of the group, all or none. Repeatable. `too-many` means that the group would have
   * more than `membersMax` members. A server that is never accepted does not count as a member, and its row is deleted after a while.
   */
  addMembers(
    groupUuid: string,
    serverUuids: readonly string[],
    membersMax: number,
  ): Promise<"added" | "unknown" | "too-many">;
  /**
   * Pins an affinity group to a cell by compare-and-set, before the server is assigned there. When several callers ask for different cells
   * at once, one gets its cell and the others learn which one it is.
   */
  pinCell(pin: { readonly groupUuid: string; readonly serverUuid: string; readonly cell: string }): Promise<PinOutcome>;
  /** Removes the pins of servers that ended in the cell without a home there and can no longer get one. */
  unpinServers(groupUuid: string, serverUuids: readonly string[], cell: string): Promise<void>;
}
