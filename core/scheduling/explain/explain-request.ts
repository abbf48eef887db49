import { stepsOnly } from "../../candidates/search-budget.ts";
import { itemsOf } from "../../tasks/move-change.ts";
import { boundTo, type ChoiceOptions, HostChooser, type HostWeight } from "../choose-hosts.ts";
import type { PlacementQuery } from "../placement-query.ts";
import type { CellHosts } from "../ranking/cell-ranking.ts";
import { type HostAnswer, HostAsker } from "./ask-host.ts";
import { examineCell } from "./examine-cell.ts";
import { type Funnel, sumFunnels } from "./funnel.ts";
import { type ExaminedCell, type Miss, nearestMisses } from "./nearest-misses.ts";

export interface ExplainAsk {
  readonly query: PlacementQuery;
  readonly options: ChoiceOptions;
  /** Most hosts that are shown with their weights. */
  readonly hostsMax: number;
  readonly missesMax: number;
  /** Servers that are to be placed one after the other. */
  readonly count: number;
  /** A host that is asked about; it need not be known. */
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
  /** The best hosts for the first server, in order, with what their weights are made of. */
  readonly hosts: readonly HostWeight[];
  readonly misses: readonly Miss[];
  /** Where the servers would go; fewer than asked for when no more fit. */
  readonly servers: readonly ExplainedServer[];
  /** About the host that was asked about; null: no cell knows it, or none was asked about. */
  readonly host: HostAnswer | null;
}

/**
 * What would become of a request, without placing anything: who is removed by which step and why, who is left in which order, whom
 * the request would go to. It asks the same functions as a decision does, and keeps nothing from one call to the next. What the servers
 * of one call take from each other is held in the views while it runs, and let go of at its end.
 *
 * Cost: some 200 ns a host, and a microsecond for each that the ledger alone does not refuse.
 */
export function explainRequest(cells: readonly CellHosts[], ask: ExplainAsk): Explanation {
  const { query, options, host } = ask;
  const examined = examineCells(query, cells, options);
  const chooser = new HostChooser();
  return {
    funnel: sumFunnels(examined.map(({ examination }) => examination.funnel)),
    hosts: chooser.best(query, cells, options, ask.hostsMax),
    misses: nearestMisses(examined, ask.missesMax),
    host: host === undefined ? null : askAbout(examined, host),
    servers: placeInThought(chooser, cells, ask),
  };
}

/** What the hosts of each cell answer. Use it before any of their views changes. */
export function examineCells(
  query: PlacementQuery,
  cells: readonly CellHosts[],
  { spec, filters = [], excludedHosts, search = stepsOnly() }: ChoiceOptions,
): ExaminedCell[] {
  return cells.map((cell) => {
    const bound = boundTo(cell, spec ?? null, filters);
    const ask = { query, bound, excludedHosts: excludedHosts?.get(cell.name) ?? new Set<string>() };
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
  { query, options, count }: ExplainAsk,
): ExplainedServer[] {
  const servers: ExplainedServer[] = [];
  const held: (() => void)[] = [];
  try {
    while (servers.length < count) {
      const choice = chooser.choose(query, cells, { ...options, seed: (options.seed + servers.length) >>> 0 });
      const [first, ...others] = choice.kind === "chosen" ? choice.selections : [];
      const cell = choice.kind === "chosen" ? cells.find(({ name }) => name === choice.cell) : undefined;
      if (!first || !cell) break;
      servers.push({ cell: cell.name, host: first.host, alternates: [...new Set(others.map((other) => other.host))] });
      if (servers.length === count) break;
      const id = `explained ${servers.length}`;
      cell.view.hold(id, itemsOf(first.allocation));
      held.push(() => cell.view.letGo(id));
    }
  } finally {
    for (const letGo of held) letGo();
  }
  return servers;
}
