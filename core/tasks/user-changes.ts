import type { ServerSpec } from "../../proto/gen/berth/shared.ts";

/** A lock that keeps users from changing the server. */
export interface ServerLock {
  /** Whether a member of the server's project or an admin of another project has locked it. */
  readonly by: "owner" | "admin";
  readonly reason: string | null;
}

/** Maximum number of actions that are kept for one server. Older actions are dropped. */
export const USER_ACTIONS_MAX = 20;

/** An action of a user that needed no operation in the server's cell. */
export interface UserAction {
  readonly action:
    | ("lock" | "unlock" | "attach_interface" | "detach_interface" | "resetState" | "changePassword")
    /** An image of a server that boots from a volume, which is made by the apis. */
    | "createImage";
  readonly requestId: string;
  readonly userId: string;
  readonly projectId: string;
  /** The server's host; null for an action that concerns none. */
  readonly host: string | null;
  readonly atMs: number;
  /** How it has ended: null while it is under way, and absent if it was done at once. `error` is null for a success. */
  readonly ended?: { readonly atMs: number; readonly error: string | null } | null;
}

/** The actions after one of them has ended. One that has ended before stays as it is, unless a success turns out to be a failure. */
export function withActionEnded(
  actions: readonly UserAction[],
  requestId: string,
  ended: NonNullable<UserAction["ended"]>,
): readonly UserAction[] {
  const isOpen = (before: UserAction["ended"]): boolean =>
    before === null || (before !== undefined && before.error === null && ended.error !== null);
  return actions.map((one) => (one.requestId === requestId && isOpen(one.ended) ? { ...one, ended } : one));
}

/**
 * Changes that users have made to a server since it was accepted. The API tier stores them, since they need no host: they can be made while
 * the server is built or moved, and while its cell does not answer. A missing field has the value of the spec.
 */
export interface UserChanges {
  readonly name?: string;
  readonly description?: string | null;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly tags?: readonly string[];
  readonly accessIpV4?: string;
  readonly accessIpV6?: string;
  readonly hostname?: string;
  readonly manualDisk?: boolean;
  /** The zone to which the server is pinned from its next move on; "" for none. */
  readonly availabilityZone?: string;
  /** Null for a server that was unlocked again. */
  readonly lock?: ServerLock | null;
  /** Oldest first. */
  readonly actions?: readonly UserAction[];
  /** When the last of the changes was made, in milliseconds since the epoch. */
  readonly atMs?: number;
}

/** Returns the spec with the changes. */
export function changedSpec(spec: ServerSpec, changes: UserChanges | null): ServerSpec {
  if (changes === null) return spec;
  const { lock: _, atMs: __, actions: ___, description, metadata, tags, ...rest } = changes;
  return {
    ...spec,
    ...rest,
    ...(description !== undefined && { description: description ?? undefined }),
    ...(metadata !== undefined && { metadata: { ...metadata } }),
    ...(tags !== undefined && { tags: [...tags] }),
  };
}
