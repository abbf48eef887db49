import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { CandidateRequest } from "../request.ts";
import { BoundRequest } from "./bound-request.ts";
import type { RequestedAmount } from "./requested-amount.ts";

/**
 * A request that is searched for many times. It is compiled again only when the view has changed in a way that makes the compiled form
 * wrong.
 */
export class KeptRequest {
  readonly #view: LedgerView;
  readonly #request: CandidateRequest;
  /**
   * True when the request names trees or hosts. Their slots can change without a sign that `#isCurrent` could see, so it is always compiled
   * again.
   */
  readonly #namesTrees: boolean;
  #compiled: BoundRequest;
  #amounts: readonly RequestedAmount[] = [];
  #layout = 0;
  #traitsRevision = 0;
  #aggregatesRevision = 0;
  #columnsVersion = 0;

  constructor(view: LedgerView, request: CandidateRequest) {
    this.#view = view;
    this.#request = request;
    this.#namesTrees = request.trees.onlyHosts !== undefined || request.groups.some((group) => group.inTree !== null);
    this.#compiled = this.#compile();
  }

  /** The compiled request, valid until the view changes. */
  current(): BoundRequest {
    if (!this.#isCurrent()) this.#compiled = this.#compile();
    return this.#compiled;
  }

  #compile(): BoundRequest {
    this.#layout = this.#view.layout;
    this.#traitsRevision = this.#view.traits.revision;
    this.#aggregatesRevision = this.#view.aggregates.revision;
    this.#columnsVersion = this.#view.columnsVersion;
    const compiled = new BoundRequest(this.#view, this.#request);
    const groups = compiled.unnumbered ? [compiled.unnumbered, ...compiled.numbered] : compiled.numbered;
    this.#amounts = groups.flatMap((group) => group.amounts);
    return compiled;
  }

  /** A name that is new to the view comes with a new set. */
  #isCurrent(): boolean {
    const { layout, traits, aggregates, columnsVersion } = this.#view;
    if (this.#namesTrees || layout !== this.#layout) return false;
    if (traits.revision !== this.#traitsRevision) return false;
    if (aggregates.revision !== this.#aggregatesRevision) return false;
    if (columnsVersion !== this.#columnsVersion) return false;
    for (const { column, roomDecides, amount } of this.#amounts) {
      if (roomDecides && (column.unevenCount > 0 || amount > column.maxUnitAtLeast)) return false;
    }
    return true;
  }
}
