import type { ChaosServer } from "./chaos-server.ts";

/** The outcome of a round. */
export interface RoundFigures {
  /** Name of the round, when there are several. */
  readonly name: string;
  readonly asked: number;
  readonly accepted: number;
  readonly refused: number;
  /** Creates whose outcome was unknown, by the state that was found later. */
  readonly unknown: number;
  readonly active: number;
  readonly error: number;
  readonly deleted: number;
  /** Servers that exist and came to no end. */
  readonly stuck: number;
  /** Servers that were accepted and then did not exist. */
  readonly lost: number;
  /** Number of servers that hold allocations although they are not ACTIVE; null when the databases could not be read. */
  readonly held: number | null;
  /** Time from acceptance to ACTIVE, in milliseconds; null when no server is ACTIVE. */
  readonly medianMs: number | null;
  readonly slowestMs: number | null;
  /** Number of servers in ERROR, by fault message. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Counts the figures of a round. `holders` are the UUIDs of all consumers that hold allocations. */
export function figuresOfRound(
  name: string,
  servers: readonly ChaosServer[],
  holders: readonly string[] | null,
): RoundFigures {
  const count = (is: (server: ChaosServer) => boolean) => servers.filter(is).length;
  const exists = servers.filter(({ uuid, lost }) => uuid !== null && !lost);
  const active = exists.filter(({ state }) => state === "ACTIVE");
  const mayHold = new Set(active.map(({ uuid }) => uuid));
  const own = new Set(servers.flatMap(({ uuid }) => uuid ?? []));
  const times = active
    .flatMap(({ endedMs, acceptedMs }) => (endedMs === null ? [] : [endedMs - acceptedMs]))
    .sort(byValue);
  const errors = exists.filter(({ state }) => state === "ERROR");
  return {
    name,
    asked: servers.length,
    accepted: count(({ create }) => create === "accepted"),
    refused: count(({ create }) => create === "refused"),
    unknown: count(({ create }) => create === "unknown"),
    active: active.length,
    error: errors.length,
    deleted: count(({ state }) => state === "DELETED"),
    stuck: exists.filter(({ state }) => state === "open").length,
    lost: count(({ lost }) => lost),
    held: holders === null ? null : holders.filter((uuid) => own.has(uuid) && !mayHold.has(uuid)).length,
    medianMs: times[Math.floor(times.length / 2)] ?? null,
    slowestMs: times.at(-1) ?? null,
    errors: countBy(errors.map(({ fault }) => fault ?? "no reason")),
  };
}

function countBy(words: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]));
}

function byValue(one: number, other: number): number {
  return one - other;
}
