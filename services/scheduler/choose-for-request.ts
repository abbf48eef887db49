import type { HostChoice, HostChooser } from "../../core/scheduling/choose-hosts.ts";
import { pinQuery } from "../../core/scheduling/pin-query.ts";
import type { PlacementQuery } from "../../core/scheduling/placement-query.ts";
import { seedOf } from "../../core/scheduling/seeded-random.ts";
import type { WeighedBy } from "../../core/scheduling/weighers/weigher.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { CellLink } from "./cell-link.ts";
import type { SchedulerEvents } from "./events.ts";
import type { SchedulerSettings } from "./settings.ts";

/** What is known of one request while it is being placed. */
export interface PlacingState {
  readonly serverUuid: string;
  readonly query: PlacementQuery;
  /** The cell that it is assigned to as far as is known; null: none yet. */
  at: string | null;
  /** Cells where it can never be dispatched any more. */
  readonly shut: Set<string>;
  /** Hosts by cell that had no room after all. */
  readonly tried: Map<string, Set<string>>;
  /** Where the other servers of its affinity group are, as a refusal said: it goes there or nowhere. Null: nothing was said. */
  pinned: { readonly cell: string; readonly hosts: readonly string[] } | null;
}

/** Chooses hosts for one request among the cells that it may go to now. */
export class RequestChooser {
  readonly #chooser: HostChooser;
  readonly #weighers: readonly WeighedBy[];
  readonly #settings: SchedulerSettings;
  readonly #clock: Clock;
  readonly #events: SchedulerEvents;

  constructor(options: {
    readonly chooser: HostChooser;
    readonly weighers: readonly WeighedBy[];
    readonly settings: SchedulerSettings;
    readonly clock: Clock;
    readonly events: SchedulerEvents;
  }) {
    this.#chooser = options.chooser;
    this.#weighers = options.weighers;
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  /** In the cell that it is assigned to, if there is a host; else in any other that it was not shut out of. */
  choose(state: PlacingState, links: readonly CellLink[]): HostChoice {
    const startedAtMs = this.#clock.monotonic();
    const { pinned } = state;
    const open = links.filter(
      (link) => link.isOpen && !state.shut.has(link.name) && (pinned === null || pinned.cell === link.name),
    );
    const home = open.filter((link) => link.name === state.at);
    const atHome = home.length > 0 ? this.#among(home, state) : null;
    const others = home.length > 0 ? open.filter((link) => link !== home[0]) : open;
    const choice = atHome?.kind === "chosen" ? atHome : this.#among(others, state);
    this.#events.decided(this.#clock.monotonic() - startedAtMs);
    if (choice.kind === "chosen" || atHome?.kind !== "none") return choice;
    return { kind: "none", refusals: [...choice.refusals, ...atHome.refusals], trees: choice.trees + atHome.trees };
  }

  #among(links: readonly CellLink[], state: PlacingState): HostChoice {
    const { attemptsMax, spread, spreadTolerance } = this.#settings;
    return this.#chooser.choose(queryFor(state, links), links, {
      seed: seedOf(state.serverUuid),
      alternates: attemptsMax - 1,
      excludedHosts: state.tried,
      weighers: this.#weighers,
      spread,
      spreadTolerance,
    });
  }
}

/** The query, narrowed to the host that the server is pinned to. */
function queryFor({ query, pinned, tried }: PlacingState, links: readonly CellLink[]): PlacementQuery {
  const link = pinned && links.find(({ name }) => name === pinned.cell);
  if (!link) return query;
  const spent = tried.get(pinned.cell);
  const host = pinned.hosts.find((name) => !spent?.has(name)) ?? pinned.hosts[0];
  const root = host === undefined ? undefined : link.view.host(host)?.provider;
  return root === undefined ? query : pinQuery(query, root);
}
