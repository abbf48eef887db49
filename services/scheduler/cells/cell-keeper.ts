import type { CellRecord } from "../../../core/stores/api/api-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { SchedulerEvents } from "../events.ts";
import type { OpenedCell, SchedulerCell, SchedulerStore } from "../ports.ts";
import type { SchedulerSettings } from "../settings.ts";
import type { BuildFailureCounts } from "./build-failure-counts.ts";
import { CellEvents } from "./cell-events.ts";
import { CellLink } from "./cell-link.ts";

export interface CellKeeperDeps {
  readonly store: Pick<SchedulerStore, "cells">;
  /** Cells that the caller opened and will close. */
  readonly given: readonly SchedulerCell[];
  /** Opens a cell that was added. Null when only the given cells are used. */
  readonly open: ((record: CellRecord) => Promise<OpenedCell>) | null;
  readonly failures: BuildFailureCounts;
  /** Called with each cell before anything can be placed in it. */
  readonly onLinked: (cell: SchedulerCell) => void;
  readonly clock: Clock;
  readonly events: SchedulerEvents;
}

/** Keeps a link to every cell that the API database names, and follows what operators add and disable. */
export class CellKeeper {
  readonly #deps: CellKeeperDeps;
  readonly #settings: SchedulerSettings;
  readonly #links = new Map<string, CellLink>();
  readonly #opened = new Map<string, { readonly cell: OpenedCell; readonly record: CellRecord }>();
  readonly #events = new Map<string, CellEvents>();
  readonly #ticker: Ticker;

  constructor(deps: CellKeeperDeps, settings: SchedulerSettings) {
    this.#deps = deps;
    this.#settings = settings;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: settings.cellRefreshMs,
      work: () => this.#refresh(),
      onError: (error) => deps.events.refreshFailed("cells", error),
    });
  }

  /**
   * Links all cells. Rejects when the API database cannot be asked, and may then be called again. A cell that cannot be reached is tried
   * again later.
   */
  async start(): Promise<void> {
    for (const cell of this.#deps.given) if (!this.#links.has(cell.name)) this.#link(cell);
    await this.#refresh();
    this.#ticker.start();
  }

  get(name: string): CellLink | undefined {
    return this.#links.get(name);
  }

  all(): CellLink[] {
    return [...this.#links.values()];
  }

  /** Resolves once every cell's view shows all that was committed before the call, or after the deadline. */
  async whenSeen(deadlineMs: number): Promise<void> {
    await Promise.allSettled(this.all().map((link) => link.cell.source.waitUntilSeen(deadlineMs)));
  }

  async close(): Promise<void> {
    await this.#ticker.stop();
    await Promise.all([...this.#events.values()].map((events) => events.stop()));
    for (const link of this.#links.values()) link.close();
    await Promise.all([...this.#opened.values()].map(({ cell }) => cell.close()));
    this.#opened.clear();
  }

  async #refresh(): Promise<void> {
    const records = await this.#deps.store.cells();
    for (const [name, { cell }] of this.#opened) {
      if (records.some((record) => record.name === name)) continue;
      await this.#drop(name, cell);
      this.#deps.events.cellRemoved(name);
    }
    for (const record of records) {
      try {
        await this.#follow(record);
      } catch (error) {
        this.#deps.events.cellUnreachable(record.name, error);
      }
    }
    for (const events of this.#events.values()) events.listen();
  }

  async #follow(record: CellRecord): Promise<void> {
    const opened = this.#opened.get(record.name);
    if (opened && (opened.record.databaseUrl !== record.databaseUrl || opened.record.natsUrl !== record.natsUrl)) {
      await this.#drop(record.name, opened.cell);
    }
    if (!this.#links.has(record.name) && this.#deps.open) {
      const cell = await this.#deps.open(record);
      this.#opened.set(record.name, { cell, record });
      this.#link(cell);
      this.#deps.events.cellOpened(record.name);
    }
    const link = this.#links.get(record.name);
    if (link) link.disabled = record.disabled;
  }

  #link(cell: SchedulerCell): void {
    this.#deps.onLinked(cell);
    this.#links.set(cell.name, new CellLink(cell, this.#deps.clock, this.#settings));
    const { failures, events } = this.#deps;
    this.#events.set(cell.name, new CellEvents({ cell, failures, events }));
  }

  /** Removes a cell. Calls that are still open keep the old link until they have their answers. Never rejects, so that the other cells have their turn. */
  async #drop(name: string, cell: OpenedCell): Promise<void> {
    const link = this.#links.get(name);
    const events = this.#events.get(name);
    this.#links.delete(name);
    this.#opened.delete(name);
    this.#events.delete(name);
    const ends = [() => events?.stop(), () => link?.claims.answered(), async () => link?.close(), () => cell.close()];
    for (const end of ends) {
      try {
        await end();
      } catch (error) {
        this.#deps.events.cellNotClosed(name, error);
      }
    }
  }
}
