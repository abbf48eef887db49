import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { runsNow } from "../core/agent/runs-now.ts";
import type { RunningGuest } from "../core/audit/facts.ts";
import { addressText } from "../runtime/address-text.ts";
import type { HostPort } from "../runtime/setting-kinds.ts";
import { peekJournal } from "../services/compute-agent/file-journal.ts";
import { GuestTable } from "../services/compute-agent/guest-table.ts";

/** Sources of the guests on hosts whose agents are processes of their own. */
export interface GuestSources {
  /** Probe addresses of agents, whose page /guests is read. */
  readonly agents: readonly HostPort[];
  /** Agents' journals (`*.journal`), or directories that contain them. */
  readonly journals: readonly string[];
}

export interface GuestReading {
  /** Running guests by host. A host without guests has an empty list. */
  readonly hosts: ReadonlyMap<string, readonly RunningGuest[]>;
  /** All guests of the same hosts, running or not. */
  readonly copies: ReadonlyMap<string, readonly RunningGuest[]>;
  /** Agents and journals that could not be read, each with the reason. */
  readonly unread: ReadonlyMap<string, string>;
}

interface FoundGuest extends RunningGuest {
  readonly running: boolean;
}

const ANSWER_MS_MAX = 5_000;

/**
 * Asks all sources at the same time. An agent's answer takes precedence over a journal: a journal contains only hosts that ever had a
 * guest, but it also shows the guests of a dead agent. Never rejects: sources that do not answer are named in the result.
 */
export async function readGuests(sources: GuestSources): Promise<GuestReading> {
  const found = new Map<string, readonly FoundGuest[]>();
  const unread = new Map<string, string>();
  const take = async (name: string, reading: Promise<ReadonlyMap<string, readonly FoundGuest[]>>): Promise<void> => {
    try {
      for (const [host, guests] of await reading) found.set(host, guests);
    } catch (error) {
      unread.set(name, reasonOf(error as Error));
    }
  };
  await Promise.all(sources.journals.map((path) => take(`journals ${path}`, readJournals(path))));
  await Promise.all(
    sources.agents.map((agent) => {
      const authority = addressText(agent);
      return take(`agent ${authority}`, askAgent(authority));
    }),
  );
  const named = (guests: readonly FoundGuest[]) =>
    guests.map(({ serverUuid, attemptId }): RunningGuest => ({ serverUuid, attemptId }));
  return {
    hosts: new Map([...found].map(([host, guests]) => [host, named(guests.filter(({ running }) => running))])),
    copies: new Map([...found].map(([host, guests]) => [host, named(guests)])),
    unread,
  };
}

async function askAgent(authority: string): Promise<ReadonlyMap<string, readonly FoundGuest[]>> {
  const answer = await fetch(`http://${authority}/guests`, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  if (!answer.ok) throw new Error(`it answered ${answer.status}`);
  const page = (await answer.json()) as {
    readonly hosts?: readonly string[];
    readonly guests?: readonly (FoundGuest & { readonly host: string; readonly justEnded?: boolean })[];
  };
  if (!Array.isArray(page.hosts) || !Array.isArray(page.guests)) throw new Error("it is not an agent of this version");
  const found = new Map<string, FoundGuest[]>(page.hosts.map((host) => [host, []]));
  // A guest that has just stopped by itself counts as running, because its server is about to become SHUTOFF.
  for (const { host, serverUuid, attemptId, running, justEnded = false } of page.guests)
    found.get(host)?.push({ serverUuid, attemptId, running: running || justEnded });
  return found;
}

async function readJournals(path: string): Promise<ReadonlyMap<string, readonly FoundGuest[]>> {
  const files = path.endsWith(".journal")
    ? [path]
    : (await readdir(path)).filter((name) => name.endsWith(".journal")).map((name) => join(path, name));
  if (files.length === 0) throw new Error("there is no journal in it");
  const found = new Map<string, FoundGuest[]>();
  for (const file of files) {
    const table = new GuestTable();
    const known = new Set<string>();
    for (const record of await peekJournal(file)) {
      table.apply(record, 0);
      known.add(record.host);
    }
    for (const host of known) {
      const guests = table.guestsOf(host);
      found.set(
        host,
        guests.map(({ serverUuid, attemptId, state }) => ({ serverUuid, attemptId, running: runsNow(state) })),
      );
    }
  }
  return found;
}

/** The reason of an error of fetch is in its cause. */
function reasonOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
