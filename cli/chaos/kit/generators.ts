import { FAKE_METADATA_KEY, type FakeScript } from "../../../services/compute-agent/fake-script.ts";

/** A server as a suite asks for it; whatever is left out is as in the smallest request there is. */
export interface WantedServer {
  /** Id of a flavor; one of one VCPU and 512 MiB unless given. */
  readonly flavor?: string;
  readonly image?: string;
  readonly zone?: string;
  /** Scheduler hints. */
  readonly hints?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** How its builds go, wherever they are: it tells the fake driver of the hosts. */
  readonly fake?: FakeScript;
}

/** A request that a client makes next. */
export type NextRequest =
  | { readonly op: "create"; readonly server: WantedServer }
  | { readonly op: "delete" | "show"; readonly server: string }
  | { readonly op: "list" };

/** What a generator knows when a client asks it what to do. */
export interface Turn {
  /** Counts from 0. */
  readonly client: number;
  /** Since the load began. */
  readonly atMs: number;
  /** In [0, 1), by the suite's seed. */
  readonly random: () => number;
  /** Uuids that were accepted and that nobody has asked to be deleted. */
  readonly servers: readonly string[];
}

/** The next request, a pause, or null: this client is done. */
export type Next = NextRequest | { readonly waitMs: number } | null;

/**
 * Makes up the load of a suite: each client asks it for a request, makes it, waits for the answer and asks again. All clients of a
 * suite share one generator; use it for one suite.
 */
export interface Generator {
  next(turn: Turn): Next;
}

/** When there is nothing yet that could be deleted or looked at. */
const NOTHING_YET: Next = { waitMs: 20 };

/** Creates without end. `wanted`: what the n-th server (from 0) is to be like. */
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

/** Deletes of servers at random, whether they are built yet or not. */
export function deletes(): Generator {
  return { next: (turn) => ofSome("delete", turn) };
}

/** Looks at servers at random. */
export function shows(): Generator {
  return { next: (turn) => ofSome("show", turn) };
}

/** Lists of all servers. */
export function lists(): Generator {
  return { next: () => ({ op: "list" }) };
}

/** Each time one of them at random, by weight; it ends when each has. */
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

/** So many requests and no more, of all clients together. */
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

/** As long as that, since the load began. */
export function forTime(ms: number, generator: Generator): Generator {
  return { next: (turn) => (turn.atMs >= ms ? null : generator.next(turn)) };
}

/** A pause before each request, of twice that at most and that on average; each client has its own. */
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

/** One after the other: the next begins when the one before has ended. */
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

/** Of the servers that it creates this share, at random, is built as the script says: for hosts that fail. */
export function faking(script: FakeScript, generator: Generator, share = 1): Generator {
  return {
    next(turn) {
      const next = generator.next(turn);
      if (next === null || !("op" in next) || next.op !== "create" || turn.random() >= share) return next;
      return { op: "create", server: { fake: script, ...next.server } };
    },
  };
}

/** What a create sends. */
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
