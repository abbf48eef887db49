import { describeSearchRefusal } from "../../candidates/refusal.ts";
import type { HostWeight } from "../host-chooser.ts";
import { type CellFunnel, type Funnel, sumFunnels } from "./funnel.ts";
import type { Miss } from "./nearest-misses.ts";

/** The effort that a decision took. */
export interface DecisionEffort {
  /** Number of hosts that were chosen until one could be claimed. */
  readonly tries: number;
  /** Number of claims that no longer fitted when they were made. */
  readonly lostRaces: number;
  /** How often the decision waited for newer views before it refused. */
  readonly looks: number;
  /** How far the cell's view was behind its database, or null when unknown. */
  readonly viewLagMs: number | null;
}

/** A server was placed. */
export interface PlacedDecision extends DecisionEffort {
  readonly outcome: "placed";
  readonly cell: string;
  readonly host: string;
  readonly alternates: readonly string[];
  /** Number of hosts on which the server could have been placed. */
  readonly feasible: number;
  /** The weights of the host and its alternates, as far as they are kept. */
  readonly weights: readonly KeptWeight[];
}

export interface KeptWeight {
  readonly host: string;
  readonly weight: number;
  /** By weigher: its raw weight, the normalised weight, and the multiplier. */
  readonly parts: Readonly<Record<string, readonly [raw: number, normalised: number, multiplier: number]>>;
}

/** No host was found. */
export interface RefusedDecision extends DecisionEffort {
  readonly outcome: "refused";
  /** Number of provider trees examined in all cells. */
  readonly hosts: number;
  readonly steps: readonly KeptStep[];
  /** By cell: how many trees each step left. */
  readonly cells: readonly { readonly cell: string; readonly hosts: number; readonly left: readonly number[] }[];
  readonly nearest: readonly KeptMiss[];
  /** Names of the cells that did not answer. */
  readonly unseen: readonly string[];
}

export interface KeptStep {
  readonly step: string;
  readonly left: number;
  /** The reasons in words, with the most frequent first. */
  readonly removed: readonly { readonly why: string; readonly hosts: number }[];
}

export interface KeptMiss {
  readonly cell: string;
  readonly host: string;
  readonly why: string;
  readonly lacks: readonly {
    readonly class: string;
    readonly requested: number;
    readonly free: number;
    readonly provider: string | null;
  }[];
}

/** How a scheduler decided, in the form that is stored for later questions. `trimDecision` limits its size. */
export type Decision = PlacedDecision | RefusedDecision;

/** Maximum number of characters that are kept of a name or reason. */
const TEXT_MAX = 120;

export function placedDecision(
  choice: {
    readonly cell: string;
    readonly selections: readonly { readonly host: string }[];
    readonly feasible: number;
    readonly weights: readonly HostWeight[];
  },
  effort: DecisionEffort,
): PlacedDecision {
  const [host = "", ...alternates] = new Set(choice.selections.map((selection) => clip(selection.host)));
  const { cell, feasible } = choice;
  return { outcome: "placed", cell, host, alternates, feasible, weights: choice.weights.map(keptWeight), ...effort };
}

export function refusedDecision(
  found: {
    readonly funnels: readonly CellFunnel[];
    readonly misses: readonly Miss[];
    readonly unseen: readonly string[];
  },
  effort: DecisionEffort,
): RefusedDecision {
  const { steps, trees, cells } = sumFunnels(found.funnels);
  return {
    outcome: "refused",
    hosts: trees,
    steps: keptSteps({ steps }),
    cells: cells.map((cell) => ({ cell: cell.cell, hosts: cell.trees, left: cell.steps.map(({ left }) => left) })),
    nearest: found.misses.map(keptMiss),
    unseen: found.unseen,
    ...effort,
  };
}

/** The steps of a funnel, with the reasons in words. */
export function keptSteps({ steps }: Pick<Funnel, "steps">): KeptStep[] {
  return steps.map(({ step, left, removed }) => ({
    step,
    left,
    removed: removed.map(({ refusal, trees }) => ({ why: clip(describeSearchRefusal(refusal)), hosts: trees })),
  }));
}

export function keptMiss({ cell, host, refusal, lacks }: Miss): KeptMiss {
  return {
    cell,
    host: clip(host),
    why: clip(describeSearchRefusal(refusal)),
    lacks: lacks.map(({ resourceClass, requested, free, provider }) => ({
      class: resourceClass,
      requested,
      free,
      provider: provider === null ? null : clip(provider),
    })),
  };
}

export function keptWeight({ host, weight, parts }: HostWeight): KeptWeight {
  return {
    host: clip(host),
    weight: rounded(weight),
    parts: Object.fromEntries(
      parts.map(({ weigher, raw, normalised, multiplier }) => [
        weigher,
        [rounded(raw), rounded(normalised), multiplier] as const,
      ]),
    ),
  };
}

function rounded(value: number): number {
  return Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(5));
}

function clip(text: string): string {
  return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX - 1).toWellFormed()}…`;
}
