import { assert } from "../../../core/assert.ts";
import type { Shortfall } from "../../../core/ledger/allocation-change.ts";
import type { ReservedClaim } from "../../../core/placing/placing.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { GroupPicks } from "./group-picks.ts";

/** Reserves claims in this scheduler's views from the choice of a host on, and tells the other schedulers of the choice. */
export class ClaimReserver {
  readonly #links: { get(name: string): CellLink | undefined };
  readonly #groupPicks: GroupPicks;
  readonly #onPick: (cell: string, host: string) => void;

  constructor(deps: {
    readonly links: { get(name: string): CellLink | undefined };
    readonly groupPicks: GroupPicks;
    /** Called when a host was chosen and will be claimed. */
    readonly onPick: (cell: string, host: string) => void;
  }) {
    this.#links = deps.links;
    this.#groupPicks = deps.groupPicks;
    this.#onPick = deps.onPick;
  }

  /** `spec` is that of a new server, which the others of its group must consider. Null for a moving server. */
  reserve({ id, cell, host, items }: ReservedClaim, spec: ServerSpec | null): void {
    const link = this.#links.get(cell);
    assert(link !== undefined, `a host of cell ${cell} was chosen, which is not known here`);
    link.claims.ask(id, items);
    this.#onPick(cell, host);
    if (spec !== null) this.#groupPicks.pick(spec, cell, host);
  }

  /** The claim failed, or its outcome is unknown. */
  release({ id, cell }: ReservedClaim, spec: ServerSpec | null): void {
    this.#links.get(cell)?.claims.giveUpUnlessCommitted(id);
    if (spec !== null) this.#groupPicks.drop(spec);
  }

  /** The claim is stored. It stays reserved until the view shows it. */
  keep({ id, cell }: ReservedClaim, xid: number): void {
    this.#links.get(cell)?.claims.commit(id, xid);
  }

  learnShortfalls(cell: string, shortfalls: readonly Shortfall[]): void {
    this.#links.get(cell)?.view.learnShortfalls(shortfalls);
  }
}
