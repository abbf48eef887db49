import { stepsOnly } from "../../candidates/search-budget.ts";
import { itemsOf } from "../../tasks/move-change.ts";
import { boundTo } from "../filters/cell-filters.ts";
import { type ChoiceOptions, HostChooser, type HostWeight } from "../host-chooser.ts";
import type { HostRequest } from "../host-request.ts";
import type { CellHosts } from "../ranking/cell-ranking.ts";
import { examineCell } from "./examine-cell.ts";
import { type Funnel, sumFunnels } from "./funnel.ts";
import { type HostAnswer, HostAsker } from "./host-asker.ts";
import { type ExaminedCell, type Miss, nearestMisses } from "./nearest-misses.ts";

export interface ExplainAsk {
  readonly hostRequest: HostRequest;
  readonly options: ChoiceOptions;
  /** Maximum number of hosts that are shown with their weights. */
  readonly hostsMax: number;
  readonly missesMax: number;
  /** Number of servers to place one after the other. */
  readonly count: number;
  /** A host that the caller asks about. It need not exist. */
  readonly host?: string | undefined;
}

export interface ExplainedServer {
  readonly cell: string;
  readonly host: string;
  /** Names of its alternates, in order. */
  readonly alternates: readonly string[];
}

export interface Explanation {
  readonly funnel: Funnel;
  /** The best hosts for the first server, in order, with the parts of their weights. */
  readonly hosts: readonly HostWeight[];
  readonly misses: readonly Miss[];
  /** Where the servers would be placed. There are fewer than requested when no more fit. */
  readonly servers: readonly ExplainedServer[];
  /** The answer about `host`, or null when no cell knows that host or the caller named none. */
  readonly host: HostAnswer | null;
}

/**
 * Explains the outcome of a request without placing anything: which step removes which hosts and why, in which order the remaining hosts
 * come, and which host would be chosen. It calls the same functions as a decision and keeps nothing between calls. Resources that the
 * servers of one call take from each other are reserved in the views while it runs and released at its end. Cost: some 200 ns for each
 * host, and a microsecond for each host that the ledger alone does not refuse.
 */
export function explainRequest(cells: readonly CellHosts[], ask: ExplainAsk): Explanation {
  const { hostRequest, options, host } = ask;
  const examined = examineCells(hostRequest, cells, options);
  const chooser = new HostChooser();
  return {
    funnel: sumFunnels(examined.map(({ examination }) => examination.funnel)),
    hosts: chooser.best(hostRequest, cells, options, ask.hostsMax),
    misses: nearestMisses(examined, ask.missesMax),
    host: host === undefined ? null : askAbout(examined, host),
    servers: placeInThought(chooser, cells, ask),
  };
}

/** Examines the hosts of each cell. Use the result before any of the views changes. */
export function examineCells(
  hostRequest: HostRequest,
  cells: readonly CellHosts[],
  { spec, filters = [], excludedHosts, search = stepsOnly() }: ChoiceOptions,
): ExaminedCell[] {
  return cells.map((cell) => {
    const bound = boundTo(cell, spec ?? null, filters);
    const ask = { hostRequest, bound, excludedHosts: excludedHosts?.get(cell.name) ?? new Set<string>() };
    return { cell, ask, examination: examineCell(cell, ask, search) };
  });
}

function askAbout(examined: readonly ExaminedCell[], host: string): HostAnswer | null {
  for (const { cell, ask } of examined) {
    const root = cell.view.hosts.slotOf(host);
    if (root >= 0) return new HostAsker(cell, ask).ask(root);
  }
  return null;
}

function placeInThought(
  chooser: HostChooser,
  cells: readonly CellHosts[],
  { hostRequest, options, count }: ExplainAsk,
): ExplainedServer[] {
  const servers: ExplainedServer[] = [];
  const reserved: (() => void)[] = [];
  try {
    while (servers.length < count) {
      const choice = chooser.choose(hostRequest, cells, { ...options, seed: (options.seed + servers.length) >>> 0 });
      const [first, ...others] = choice.kind === "chosen" ? choice.selections : [];
      const cell = choice.kind === "chosen" ? cells.find(({ name }) => name === choice.cell) : undefined;
      if (!first || !cell) break;
      servers.push({ cell: cell.name, host: first.host, alternates: [...new Set(others.map((other) => other.host))] });
      if (servers.length === count) break;
      const id = `explained ${servers.length}`;
      cell.view.reserve(id, itemsOf(first.allocation));
      reserved.push(() => cell.view.release(id));
    }
  } finally {
    for (const release of reserved) release();
  }
  return servers;
}
