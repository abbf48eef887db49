import type { ServerWatcher } from "../../../core/scheduling/live-cell-facts.ts";
import type { LawsReading } from "../../../core/stores/laws-reading.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { Cells } from "../cells/hydrate-servers.ts";
import type { ApiEvents } from "../events.ts";
import type { CellPort, OperatorStores, RequestsPort } from "../ports.ts";
import type { FaultPanel } from "./fault-panel.ts";
import { HostPicture } from "./host-picture.ts";
import type { LiveCell, LiveChange, LiveFigures, LivePicture, LiveScheduler } from "./live-picture.ts";
import { PathBook } from "./path-book.ts";
import { SchedulerRates } from "./scheduler-rates.ts";
import type { UsageHistory } from "./usage-history.ts";

const TICK_MS = 250;
/** How often the API database is asked for requests, and the cells and Redis for data that is not in the views. */
const REQUESTS_MS = 500;
const SURROUNDINGS_MS = 2_000;
const NEWEST_REQUESTS = 100;
/** Servers of one cell that one question reads. */
const READ_AT_ONCE = 100;

export interface LiveModelDeps {
  readonly store: Pick<RequestsPort, "listRequests" | "requests">;
  readonly ports: readonly CellPort[];
  readonly cells: Cells;
  /** Null when this process has no soft state. */
  readonly softState: OperatorStores["softState"] | null;
  /** Returns the findings of an audit in this process. Null where there is none: an audit elsewhere leaves them in the soft state. */
  readonly laws: (() => LawsReading | null) | null;
  /** Null where faults cannot be injected. */
  readonly faults: FaultPanel | null;
  readonly history: Pick<UsageHistory, "samples">;
  readonly clock: Clock;
  readonly events: Pick<ApiEvents, "dashboardFailed">;
}

/** A question that is asked again and again, never twice at a time. */
interface Asking {
  readonly everyMs: number;
  readonly ask: () => Promise<void>;
  atMs: number;
  isOpen: boolean;
}

/**
 * The live picture of the cloud. It looks at the views every TICK_MS from its construction to `stop`, and reports each change. Each
 * question runs at most once at a time, and waits for nothing else, so that a silent cell delays only its own part.
 */
export class LiveModel {
  readonly #deps: LiveModelDeps;
  readonly #onChange: (change: LiveChange | "everything") => void;
  readonly #hosts: HostPicture;
  readonly #book: PathBook;
  readonly #askings: readonly Asking[];
  readonly #answers = new Map<string, Pick<LiveCell, "answers" | "conductors">>();
  #schedulers: readonly LiveScheduler[] = [];
  readonly #rates = new SchedulerRates();
  #laws: LawsReading | null = null;
  #toldCells = "";
  #toldFigures = "";
  #timer: Timer | null;
  #stopped = false;

  /** `onChange` gets "everything" when the whole picture has changed. */
  constructor(deps: LiveModelDeps, onChange: (change: LiveChange | "everything") => void) {
    this.#deps = deps;
    this.#onChange = onChange;
    this.#book = new PathBook(deps.clock.now());
    this.#hosts = new HostPicture(deps.ports);
    const { ports, softState } = deps;
    const asking = (everyMs: number, ask: () => Promise<void>): Asking => {
      return { everyMs, ask, atMs: Number.NEGATIVE_INFINITY, isOpen: false };
    };
    this.#askings = [
      asking(REQUESTS_MS, () => this.#askRequests()),
      ...(softState === null ? [] : [asking(SURROUNDINGS_MS, () => this.#askSoftState(softState))]),
      ...ports.map(({ name }) => asking(SURROUNDINGS_MS, () => this.#askConductors(name))),
      ...ports.map(({ name }) => asking(TICK_MS, () => this.#readPaths(name))),
    ];
    for (const port of ports) port.facts?.watchServers(this.#watcherOf(port));
    this.#hosts.look();
    this.#timer = deps.clock.setTimer(0, () => this.#tick());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    for (const { facts } of this.#deps.ports) facts?.watchServers(null);
  }

  /** The whole picture as it was last sent. */
  picture(): LivePicture {
    return {
      classes: this.#hosts.classes,
      cells: this.#cells(),
      hosts: this.#hosts.rows(),
      paths: this.#book.paths(),
      figures: this.#figures(),
      history: this.#deps.history.samples(this.#hosts.classes),
    };
  }

  #watcherOf({ name, source }: CellPort): ServerWatcher {
    const { clock } = this.#deps;
    // A load brings every server again. These rows are not events.
    const isLoading = () => source?.ready === false;
    return {
      serverPut: (change, before) => {
        if (!isLoading()) this.#book.serverPut(name, change, before, clock.now());
      },
      serverRemoved: (uuid) => {
        if (!isLoading()) this.#book.serverRemoved(uuid, clock.now());
      },
      failed: (error) => this.#deps.events.dashboardFailed(name, error),
    };
  }

  #tick(): void {
    const nowMs = this.#deps.clock.monotonic();
    for (const asking of this.#askings) {
      if (asking.isOpen || nowMs < asking.atMs + asking.everyMs) continue;
      asking.isOpen = true;
      asking.atMs = nowMs;
      // A source that does not answer leaves its part of the picture as it was; the cells' clients count and log it.
      void asking
        .ask()
        .catch(() => undefined)
        .finally(() => {
          asking.isOpen = false;
        });
    }
    const change = this.#change();
    if (change !== null) this.#onChange(change);
    // A handler may have stopped this model.
    if (!this.#stopped) this.#timer = this.#deps.clock.setTimer(TICK_MS, () => this.#tick());
  }

  #change(): LiveChange | "everything" | null {
    const hosts = this.#hosts.look();
    const paths = this.#book.take();
    const cells = this.#cells();
    const figures = this.#figures();
    const cellsText = JSON.stringify(cells);
    const figuresText = JSON.stringify({ ...figures, at: 0 });
    const change: LiveChange = {
      ...(cellsText !== this.#toldCells && { cells }),
      ...(hosts !== null && hosts.rows.length > 0 && { hosts: hosts.rows }),
      ...(hosts !== null && hosts.gone.length > 0 && { goneHosts: hosts.gone }),
      ...(paths.paths.length > 0 && { paths: paths.paths }),
      ...(paths.gone.length > 0 && { gonePaths: paths.gone }),
      ...(figuresText !== this.#toldFigures && { figures }),
    };
    this.#toldCells = cellsText;
    this.#toldFigures = figuresText;
    if (hosts === null) return "everything";
    return Object.keys(change).length === 0 ? null : change;
  }

  #cells(): readonly LiveCell[] {
    return this.#deps.ports.map(({ name, source, view }) => ({
      name,
      ready: view !== null && source?.ready !== false,
      answers: this.#answers.get(name)?.answers ?? true,
      lagMs: source?.lagMs == null ? null : Math.round(source.lagMs),
      conductors: this.#answers.get(name)?.conductors ?? [],
    }));
  }

  #figures(): LiveFigures {
    const waiting = this.#book.waiting();
    return {
      at: this.#deps.clock.now(),
      counts: this.#book.counts,
      busy: this.#hosts.busy,
      waiting: waiting.length,
      oldestWaitingAt: waiting.length === 0 ? null : Math.min(...waiting.map(({ at }) => at)),
      cellCounts: this.#deps.ports.map(({ name }) => this.#book.countsOf(name)),
      schedulers: this.#schedulers,
      laws: this.#deps.laws === null ? this.#laws : this.#deps.laws(),
      faults: this.#deps.faults?.state() ?? null,
    };
  }

  /** Reads the newest requests, and those that are shown as waiting although they are no longer among the newest. */
  async #askRequests(): Promise<void> {
    const { store } = this.#deps;
    const newest = await store.listRequests({ projectId: null, marker: null, limit: NEWEST_REQUESTS });
    this.#book.requestsSeen(newest);
    const seen = new Set(newest.map(({ serverUuid }) => serverUuid));
    const others = this.#book.waiting().filter(({ id }) => !seen.has(id));
    if (others.length > 0) this.#book.requestsSeen(await store.requests(others.map(({ id }) => id)));
  }

  async #askSoftState(softState: OperatorStores["softState"]): Promise<void> {
    const asked = [softState.living(), softState.laws(), softState.buildFailures()] as const;
    const [alive, laws, failures] = await Promise.all(asked);
    this.#schedulers = this.#rates.take(alive, await softState.figuresOf(alive));
    this.#laws = laws;
    this.#hosts.setFailures(failures);
  }

  async #askConductors(name: string): Promise<void> {
    const answer = await this.#deps.cells.get(name)?.admin((admin) => admin.conductors());
    const known = this.#answers.get(name)?.conductors ?? [];
    if (answer?.kind === "answer") this.#answers.set(name, { answers: true, conductors: answer.value });
    else this.#answers.set(name, { answers: false, conductors: known });
  }

  async #readPaths(name: string): Promise<void> {
    const ids = this.#book.takeStale(name, READ_AT_ONCE);
    if (ids.length === 0) return;
    const answer = await this.#deps.cells.get(name)?.operations(async (store) => {
      // The order matters: an attempt that ends in between is shown as open, and its server's row then causes another
      // read.
      const attempts = await store.attemptsOfAll(ids);
      return { attempts, servers: await store.servers(ids) };
    });
    if (answer?.kind === "answer") this.#book.read(name, answer.value.servers, answer.value.attempts);
    else {
      this.#book.leaveStale(ids);
      await new Promise<void>((resolve) => {
        this.#deps.clock.setTimer(SURROUNDINGS_MS, resolve);
      });
    }
  }
}
