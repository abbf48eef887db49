import type { RequestContext } from "../../../core/scheduling/request/request-context.ts";
import type { RequestTranslation } from "../../../core/scheduling/request/translate-request.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { SchedulerSettings } from "../settings.ts";
import { HostRequestCache } from "./host-request-cache.ts";
import type { RequestChooser } from "./request-chooser.ts";

/** The basis for a choice of a host: the cells with their views, and the operators' settings. */
export class SchedulerViews {
  readonly cells: { get(name: string): CellLink | undefined; all(): CellLink[] };
  readonly chooser: RequestChooser;
  readonly #context: () => RequestContext;
  readonly #catchUp: () => Promise<void>;
  readonly #seenDeadlineMs: number;
  readonly #queries = new HostRequestCache();

  constructor(
    deps: {
      readonly cells: { get(name: string): CellLink | undefined; all(): CellLink[] };
      readonly chooser: RequestChooser;
      /** The present input of request filters: the same object as long as nothing has changed. */
      readonly context: () => RequestContext;
      /** Resolves when settings that operators made before the call are known here, or cannot be read. */
      readonly catchUp: () => Promise<void>;
    },
    settings: Pick<SchedulerSettings, "seenDeadlineMs">,
  ) {
    this.cells = deps.cells;
    this.chooser = deps.chooser;
    this.#context = deps.context;
    this.#catchUp = deps.catchUp;
    this.#seenDeadlineMs = settings.seenDeadlineMs;
  }

  /** The request in the ledger's terms under the operators' present settings, or null when it has no flavor. */
  translationOf(spec: ServerSpec): RequestTranslation | null {
    return this.#queries.of(spec, this.#context());
  }

  /** Resolves once these views and settings show everything that was committed before the call. Returns the cells that did not catch up. */
  async look(links: readonly CellLink[]): Promise<readonly string[]> {
    const caughtUp = this.#catchUp();
    const seen = await Promise.allSettled(links.map((link) => this.whenSeen(link)));
    await caughtUp;
    return links.filter((_, index) => seen[index]?.status === "rejected").map((link) => link.name);
  }

  /** Resolves once this scheduler's own claims there have their answers and the view shows them. Rejects when the view does not catch up. */
  async whenSeen(link: CellLink): Promise<void> {
    await link.claims.answered();
    await link.cell.source.waitUntilSeen(this.#seenDeadlineMs);
  }
}
