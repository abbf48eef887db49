/** The JSON of the operators' API for steps, rejected hosts and weights. */
export interface ShownStep {
  readonly step: string;
  readonly left: number;
  readonly removed: readonly { readonly why: string; readonly hosts: number }[];
}

export interface ShownLack {
  readonly class: string;
  readonly requested: number;
  readonly free: number;
  readonly provider: string | null;
}

export interface ShownMiss {
  readonly cell: string;
  readonly host: string;
  readonly why: string;
  readonly lacks: readonly ShownLack[];
}

export interface ShownWeight {
  readonly host: string;
  readonly weight: number;
  /** By weigher: the raw weight, the normalised weight and the multiplier. */
  readonly parts: Readonly<Record<string, readonly [number, number, number]>>;
}

export interface ShownFunnel {
  readonly hosts: number;
  readonly steps: readonly ShownStep[];
  readonly cells: readonly { readonly cell: string; readonly hosts: number; readonly left: readonly number[] }[];
  readonly nearest: readonly ShownMiss[];
}

/** The answer to the question where a server would be placed. */
export interface ShownExplanation extends ShownFunnel {
  readonly refusal: string | null;
  readonly ranked: readonly (ShownWeight & { readonly cell: string })[];
  readonly servers: readonly {
    readonly cell: string;
    readonly host: string;
    readonly alternates: readonly string[];
  }[];
  readonly host: {
    readonly cell: string;
    readonly host: string;
    readonly steps: readonly { readonly step: string; readonly why: string | null }[];
    readonly lacks: readonly ShownLack[];
  } | null;
  readonly cells_not_searched: readonly string[];
}

interface Effort {
  readonly tries: number;
  readonly lostRaces: number;
  readonly looks: number;
  readonly viewLagMs: number | null;
}

export type ShownDecision =
  | (Effort & {
      readonly outcome: "placed";
      readonly cell: string;
      readonly host: string;
      readonly alternates: readonly string[];
      readonly feasible: number;
      readonly weights: readonly ShownWeight[];
    })
  | (Effort & ShownFunnel & { readonly outcome: "refused"; readonly unseen: readonly string[] });

/** The answer to the question why a server is on its host. */
export interface ShownDecisions {
  readonly decisions: readonly {
    readonly server: string;
    readonly request_id: string;
    readonly scheduler: string;
    readonly at: string;
    readonly decision: ShownDecision;
  }[];
}
