import { type Candidate, CandidateSearch } from "../../../../core/candidates/best/candidate-search.ts";
import type { Shortfall } from "../../../../core/ledger/allocation-change.ts";
import { translatePort } from "../../../../core/scheduling/request/translate-port.ts";
import type { PortResourceRequest } from "../../../../proto/gen/berth/shared.ts";
import { badRequest, unavailable } from "../../http/fault.ts";
import type { ActionTarget } from "../server-actions/action-target.ts";
import type { Planned } from "./patch-server.ts";

/** Maximum number of ways that are tried to serve a port on one host. */
const WAYS_MAX = 64;
const SEEN_DEADLINE_MS = 2_000;

/** Finds ways to serve request groups on one host, in this process's view. Ways for which the cell had no room are skipped. */
export class WaysOnHost {
  readonly #target: ActionTarget;
  #isFresh = false;

  constructor(target: ActionTarget) {
    this.#target = target;
  }

  /** Returns the next way, as providers by suffix. A view may be behind, so it is waited for before a refusal. */
  async next(
    host: string,
    groups: readonly PortResourceRequest[],
    lacking: readonly Shortfall[],
  ): Promise<ReadonlyMap<string, string> | Extract<Planned, "again">> {
    const { cell, server } = this.#target;
    const { view } = cell;
    if (view === null) throw unavailable(`This process does not know the resources of the hosts of cell ${cell.name}.`);
    const request = { ...translatePort(groups), trees: onHost(host), limit: WAYS_MAX };
    for (const way of new CandidateSearch(view, request)) {
      if (lacking.some((shortfall) => isPartOf(way, shortfall))) continue;
      return new Map([...way.mappings].map(([suffix, [provider = ""]]) => [suffix, provider]));
    }
    if (this.#isFresh)
      throw badRequest(`Failed to allocate additional resources to ${server.uuid} during interface attach`);
    this.#isFresh = true;
    if (!(await cell.viewSeesAll(SEEN_DEADLINE_MS)))
      throw unavailable(`The resources of the hosts of cell ${cell.name} are not known at the moment.`);
    return "again";
  }
}

const onHost = (host: string) => ({
  openHostsOnly: false,
  excludedHosts: new Set<string>(),
  onlyHosts: new Set([host]),
});

function isPartOf({ items }: Candidate, { provider, resourceClass }: Shortfall): boolean {
  return items.some((item) => item.provider === provider && item.resourceClass === resourceClass);
}
