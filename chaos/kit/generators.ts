import { FAKE_METADATA_KEY, type FakeScript } from "../../services/compute-agent/fake-script.ts";

/** A server as a suite asks for it. Each property that is left out is as in the smallest possible request. */
export interface WantedServer {
  /** Id of a flavor; by default one with 1 VCPU and 512 MiB. */
  readonly flavor?: string;
  readonly image?: string;
  readonly zone?: string;
  /** Scheduler hints. */
  readonly hints?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** How its builds behave on any host; instructions for the fake driver. */
  readonly fake?: FakeScript;
}

/** A request that a client makes next. */
export type NextRequest =
  | { readonly op: "create"; readonly server: WantedServer }
  | { readonly op: "delete" | "show"; readonly server: string }
  | { readonly op: "list" };

/** The information for a generator when a client asks it for the next request. */
export interface Turn {
  /** Number of the client, counted from 0. */
  readonly client: number;
  /** Milliseconds since the load began. */
  readonly atMs: number;
  /** Returns a number in [0, 1) from the suite's seed. */
  readonly random: () => number;
  /** UUIDs of accepted servers without a delete request. */
  readonly servers: readonly string[];
}

/** The next request, a pause, or null when this client is done. */
export type Next = NextRequest | { readonly waitMs: number } | null;

/**
 * Generates the load of a suite: each client asks it for a request, sends that, waits for the answer and asks again. All clients of a suite
 * share one generator, which may be used for one suite only.
 */
export interface Generator {
  next(turn: Turn): Next;
}

/** Returned while there is no server that could be deleted or looked at. */
const NOTHING_YET: Next = { waitMs: 20 };

/** Creates servers without end. `wanted` returns the properties of the n-th server, counted from 0. */
export function creates(wanted: (n: number, turn: Turn) => WantedServer = () => ({})): Generator {
  let count = 0;
  return {
    next(turn) {
      const server = wanted(count, turn);
      count += 1;
      return { op: "create", server };
    },
  };
}

/** Deletes random servers, whether or not they are built yet. */
export function deletes(): Generator {
  return { next: (turn) => ofSome("delete", turn) };
}

/** Shows random servers. */
export function shows(): Generator {
  return { next: (turn) => ofSome("show", turn) };
}

/** Lists all servers. */
export function lists(): Generator {
  return { next: () => ({ op: "list" }) };
}

/** Picks one of the generators at random each time, by weight. It is done when all of them are. */
export function mix(...parts: readonly (readonly [weight: number, generator: Generator])[]): Generator {
  const open = new Set(parts);
  return {
    next(turn) {
      while (open.size > 0) {
        const part = pickByWeight([...open], turn.random);
        const next = part[1].next(turn);
        if (next !== null) return next;
        open.delete(part);
      }
      return null;
    },
  };
}

/** At most `requests` requests, counted over all clients together. */
export function limit(requests: number, generator: Generator): Generator {
  let made = 0;
  return {
    next(turn) {
      if (made >= requests) return null;
      const next = generator.next(turn);
      if (next !== null && "op" in next) made += 1;
      return next;
    },
  };
}

/** Ends the generator `ms` milliseconds after the load began. */
export function forTime(ms: number, generator: Generator): Generator {
  return { next: (turn) => (turn.atMs >= ms ? null : generator.next(turn)) };
}

/** Adds a random pause before each request, uniform up to twice `meanMs`. Each client has its own pauses. */
export function pausing(meanMs: number, generator: Generator): Generator {
  const rested = new Set<number>();
  return {
    next(turn) {
      if (rested.delete(turn.client)) return generator.next(turn);
      rested.add(turn.client);
      return { waitMs: turn.random() * 2 * meanMs };
    },
  };
}

/** Runs the generators one after the other: each begins when the one before is done. */
export function inTurn(...generators: readonly Generator[]): Generator {
  let at = 0;
  return {
    next(turn) {
      for (; at < generators.length; at += 1) {
        const next = generators[at]!.next(turn);
        if (next !== null) return next;
      }
      return null;
    },
  };
}

/** Gives this share of the created servers, picked at random, the script for the fake driver, for example to have builds fail. */
export function faking(script: FakeScript, generator: Generator, share = 1): Generator {
  return {
    next(turn) {
      const next = generator.next(turn);
      if (next === null || !("op" in next) || next.op !== "create" || turn.random() >= share) return next;
      return { op: "create", server: { fake: script, ...next.server } };
    },
  };
}

/** The body of a create request. */
export function createBody(name: string, wanted: WantedServer, flavor: string): object {
  const fake = wanted.fake === undefined ? {} : { [FAKE_METADATA_KEY]: JSON.stringify(wanted.fake) };
  return {
    server: {
      ...{ name, flavorRef: wanted.flavor ?? flavor, imageRef: wanted.image ?? "", networks: "none" },
      metadata: { ...wanted.metadata, ...fake },
      ...(wanted.zone !== undefined && { availability_zone: wanted.zone }),
    },
    ...(wanted.hints !== undefined && { "os:scheduler_hints": wanted.hints }),
  };
}

function ofSome(op: "delete" | "show", { servers, random }: Turn): Next {
  const server = servers[Math.floor(random() * servers.length)];
  return server === undefined ? NOTHING_YET : { op, server };
}

function pickByWeight<Part extends readonly [number, unknown]>(parts: readonly Part[], random: () => number): Part {
  const total = parts.reduce((sum, [weight]) => sum + weight, 0);
  let at = random() * total;
  for (const part of parts) {
    at -= part[0];
    if (at < 0) return part;
  }
  return parts.at(-1)!;
}
