import { isHardGroup, serversPerHostMax } from "../../../core/tasks/group-rule.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** The host that was picked for a server of a group. */
interface Pick {
  readonly cell: string;
  readonly host: string;
  readonly atMs: number;
}

/** What the hosts that were picked for the other servers of a group mean for the next choice. */
export interface GroupAdvice {
  /** For affinity groups: the cell and hosts that the group's other servers go to. */
  readonly pinned: { readonly cell: string; readonly hosts: readonly string[] } | null;
  /** For anti-affinity groups: the hosts, by cell, that the group has filled. */
  readonly full: ReadonlyMap<string, ReadonlySet<string>>;
}

const NO_ADVICE: GroupAdvice = { pinned: null, full: new Map() };
const GROUPS_MAX = 10_000;

/**
 * The hosts that this scheduler picked for servers of groups, kept until the host facts show these servers. They keep servers of one group
 * that are placed at the same time from conflicting with each other. This is only advice: the claim decides.
 */
export class GroupPicks {
  readonly #clock: Clock;
  readonly #expiryMs: number;
  /** The picks by group uuid and server uuid. */
  readonly #picks = new Map<string, Map<string, Pick>>();

  constructor(clock: Clock, expiryMs: number) {
    this.#clock = clock;
    this.#expiryMs = expiryMs;
  }

  pick({ uuid, group }: ServerSpec, cell: string, host: string): void {
    if (!isHardGroup(group)) return;
    const picks = this.#picks.get(group.uuid) ?? new Map<string, Pick>();
    // Deleting the group first moves it to the end, so that the map is ordered by the time of the last pick.
    this.#picks.delete(group.uuid);
    this.#picks.set(group.uuid, picks.set(uuid, { cell, host, atMs: this.#clock.monotonic() }));
    for (const oldest of this.#picks.keys()) {
      if (this.#picks.size <= GROUPS_MAX) break;
      this.#picks.delete(oldest);
    }
  }

  /** Forgets the pick for a server that was not placed. */
  drop({ uuid, group }: ServerSpec): void {
    if (isHardGroup(group)) this.#picks.get(group.uuid)?.delete(uuid);
  }

  adviceFor({ uuid, group }: ServerSpec): GroupAdvice {
    if (!isHardGroup(group)) return NO_ADVICE;
    const picks = this.#picks.get(group.uuid);
    if (!picks) return NO_ADVICE;
    const expiredAtMs = this.#clock.monotonic() - this.#expiryMs;
    for (const [server, { atMs }] of picks) if (atMs < expiredAtMs) picks.delete(server);
    const others = [...picks].flatMap(([server, pick]) => (server === uuid ? [] : [pick]));
    const [first] = others;
    if (!first) return NO_ADVICE;
    if (group.policy === "affinity") return { ...NO_ADVICE, pinned: { cell: first.cell, hosts: [first.host] } };
    return { ...NO_ADVICE, full: fullHosts(others, serversPerHostMax(group)) };
  }
}

function fullHosts(picks: readonly Pick[], most: number): ReadonlyMap<string, ReadonlySet<string>> {
  const full = new Map<string, Set<string>>();
  const counts = new Map<string, number>();
  for (const { cell, host } of picks) {
    const key = `${cell}/${host}`;
    const count = 1 + (counts.get(key) ?? 0);
    counts.set(key, count);
    if (count >= most) full.set(cell, (full.get(cell) ?? new Set()).add(host));
  }
  return full;
}
