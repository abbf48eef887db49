import pg from "pg";

/** How long a server may take to report its role. */
const PROBE_MS = 2_000;

/** A server that accepts writes. */
export interface Primary {
  readonly url: string;
  /** Grows with every promotion. */
  readonly timeline: number;
}

/** No server of a list accepts writes at the moment. The code is Postgres's own for a server that is not ready. */
export class NoPrimaryError extends Error {
  readonly code = "57P03";

  constructor(reasons: readonly string[]) {
    super(`none of the database's servers accepts writes: ${reasons.join("; ")}`);
    this.name = "NoPrimaryError";
  }
}

/**
 * Finds out which of several servers is the primary.
 * - trusted: the last primary found is returned without asking.
 * - in doubt: at first, and whenever a connection to the primary failed or was lost. The next caller asks all servers.
 *
 * Of two servers that accept writes, the one promoted last counts. A server that was promoted earlier than any primary seen so far never
 * counts again: it is a failed primary that came back beside its successor, and the commits that it acknowledges are lost.
 */
export class PrimaryFinder {
  readonly #urls: readonly string[];
  readonly #probe: (url: string) => Promise<number | null>;
  #trusted: Primary | null = null;
  #looking: Promise<Primary> | null = null;
  #timelineMin = 0;
  readonly #watched = new Set<{ readonly timeline: number; readonly cut: () => void }>();

  /** `probe` returns the timeline of a server that accepts writes, or null for a standby. */
  constructor(urls: readonly string[], probe: (url: string) => Promise<number | null> = askTimeline) {
    this.#urls = urls;
    this.#probe = probe;
  }

  /** Rejects with a `NoPrimaryError`. Cost: nothing while trusted, otherwise a connection to each server. */
  async find(): Promise<Primary> {
    if (this.#trusted !== null) return this.#trusted;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** Reports that a connection to the primary failed or was lost. */
  distrust({ url, timeline }: Primary): void {
    if (this.#trusted?.url === url && this.#trusted.timeline === timeline) this.#trusted = null;
  }

  /**
   * Does the same as `distrust`, and asks all servers at once even if no caller wants a connection, because existing connections to the
   * primary may have to be cut.
   */
  suspect(primary: Primary): void {
    this.distrust(primary);
    if (this.#watched.size > 0) void this.find().catch(() => undefined);
  }

  /**
   * Calls `cut` when a primary that was promoted later has been found: reads from an old primary that is still running are stale, and its
   * writes are lost. Returns a function that cancels this.
   */
  cutWhenReplaced({ timeline }: Primary, cut: () => void): () => void {
    const one = { timeline, cut };
    this.#watched.add(one);
    return () => this.#watched.delete(one);
  }

  async #look(): Promise<Primary> {
    const answers = await Promise.allSettled(this.#urls.map((url) => this.#probe(url)));
    const reasons: string[] = [];
    let best: Primary | null = null;
    for (const [index, answer] of answers.entries()) {
      const url = this.#urls[index] as string;
      const reason = reasonAgainst(answer, this.#timelineMin);
      if (reason !== null) reasons.push(`${new URL(url).host}: ${reason}`);
      else if (answer.status === "fulfilled" && (answer.value ?? 0) > (best?.timeline ?? 0))
        best = { url, timeline: answer.value as number };
    }
    if (best === null) throw new NoPrimaryError(reasons);
    this.#timelineMin = best.timeline;
    this.#trusted = best;
    for (const one of [...this.#watched]) {
      if (one.timeline >= best.timeline) continue;
      this.#watched.delete(one);
      one.cut();
    }
    return best;
  }
}

function reasonAgainst(answer: PromiseSettledResult<number | null>, timelineMin: number): string | null {
  if (answer.status === "rejected") return (answer.reason as Error).message || String(answer.reason);
  if (answer.value === null) return "a standby";
  return answer.value < timelineMin ? `a primary of timeline ${answer.value}, which was replaced` : null;
}

async function askTimeline(url: string): Promise<number | null> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "berth primary?",
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  });
  client.on("error", () => undefined); // The pending query rejects with the same error.
  try {
    await client.connect();
    // The first eight digits of the log file's name are the timeline, in hexadecimal.
    const { rows } = await client.query<{ file: string | null }>(
      "select case when not pg_is_in_recovery() then pg_walfile_name(pg_current_wal_insert_lsn()) end as file",
    );
    const file = rows[0]?.file ?? null;
    return file === null ? null : Number.parseInt(file.slice(0, 8), 16);
  } finally {
    await client.end().catch(() => undefined);
  }
}
