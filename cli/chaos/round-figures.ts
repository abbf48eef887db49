import type { ChaosServer } from "./chaos-server.ts";

/** What came out of a round. */
export interface RoundFigures {
  /** Of several rounds. */
  readonly name: string;
  readonly asked: number;
  readonly accepted: number;
  readonly refused: number;
  /** Creates without an answer that says what happened, by what turned out later. */
  readonly unknown: number;
  readonly active: number;
  readonly error: number;
  readonly deleted: number;
  /** Exist, and came to no end. */
  readonly stuck: number;
  /** Accepted, and then there was none. */
  readonly lost: number;
  /** Hold something though they are not ACTIVE; null: could not be looked at. */
  readonly held: number | null;
  /** From acceptance to ACTIVE, in milliseconds; null: none is. */
  readonly medianMs: number | null;
  readonly slowestMs: number | null;
  /** Servers in ERROR, by what is said of them. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Counts. `holders`: uuids of all that hold something. */
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
