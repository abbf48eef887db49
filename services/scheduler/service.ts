import type { Registry } from "prom-client";
import { isUnavailable } from "../../adapters/postgres/client/run-stored.ts";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import { assert } from "../../core/assert.ts";
import type { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { HostFilter } from "../../core/scheduling/filters/host-filter.ts";
import { nameClash } from "../../core/scheduling/filters/host-filters.ts";
import { HostChooser } from "../../core/scheduling/host-chooser.ts";
import type { HostRequest } from "../../core/scheduling/host-request.ts";
import type { RequestContext } from "../../core/scheduling/request/request-context.ts";
import { buildFailures } from "../../core/scheduling/weighers/build-failures.ts";
import { GpuFragmentation } from "../../core/scheduling/weighers/gpu-fragmentation.ts";
import { OwnSlice } from "../../core/scheduling/weighers/own-slice.ts";
import { RecentPicks } from "../../core/scheduling/weighers/recent-picks.ts";
import { WeigherSet } from "../../core/scheduling/weighers/weigher-set.ts";
import type { AggregateStore } from "../../core/stores/api/aggregate-store.ts";
import type { CellRecord } from "../../core/stores/api/api-store.ts";
import type { DecisionStore } from "../../core/stores/api/decision-store.ts";
import type { ServerGroupStore } from "../../core/stores/api/server-group-store.ts";
import type { SettingsStore } from "../../core/stores/api/settings-store.ts";
import type { SoftState } from "../../core/stores/soft-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { Logger } from "../../runtime/logger.ts";
import { newRowUuid } from "../../runtime/new-row-uuid.ts";
import { Patience } from "../../runtime/patience.ts";
import type { Service } from "../../runtime/service.ts";
import { AggregateKeeper, NO_AGGREGATES } from "./cells/aggregate-keeper.ts";
import { BuildFailureCounts } from "./cells/build-failure-counts.ts";
import { CellKeeper } from "./cells/cell-keeper.ts";
import { DecisionRecorder } from "./decision-recorder.ts";
import { SchedulerEvents } from "./events.ts";
import { LiveSettings } from "./live-settings.ts";
import { PickTeller } from "./pick-teller.ts";
import { ClaimReserver } from "./placing/claim-reserver.ts";
import { GroupInFlight } from "./placing/group-in-flight.ts";
import { GroupPicks } from "./placing/group-picks.ts";
import { GroupPinner } from "./placing/group-pinner.ts";
import { MovePlacer } from "./placing/move-placer.ts";
import { MoveWrites } from "./placing/move-writes.ts";
import { MultiCreatePlacer } from "./placing/multi-create-placer.ts";
import { RequestChooser } from "./placing/request-chooser.ts";
import { RequestPlacer } from "./placing/request-placer.ts";
import { RequestWrites } from "./placing/request-writes.ts";
import { SchedulerViews } from "./placing/scheduler-views.ts";
import { WorkPlacer } from "./placing/work-placer.ts";
import type {
  OpenedCell,
  SchedulerBus,
  SchedulerCell,
  SchedulerMoves,
  SchedulerReservations,
  SchedulerStore,
} from "./ports.ts";
import { RequestIntake } from "./request-intake.ts";
import { RequestReader } from "./request-reader.ts";
import { SelfAnnouncer } from "./self-announcer.ts";
import { ownSchedulingSettings, type SchedulerSettings } from "./settings.ts";
import { ArrivalSweep } from "./sweeps/arrival-sweep.ts";
import { MoveSweep } from "./sweeps/move-sweep.ts";
import { RequestSweep } from "./sweeps/request-sweep.ts";
import { ReservationPurge } from "./sweeps/reservation-purge.ts";

/** How long a start waits for the views to load. A cell that takes longer is used as soon as its view has loaded. */
const VIEWS_LOADED_MS = 5_000;

/** How long a start waits for the work queue. After that, the subscription continues in the background. */
const LISTENING_MS = 5_000;

/** The dependencies of a scheduler. The caller owns all of it except the cells that `openCell` opened. */
export interface SchedulerDeps {
  readonly store: SchedulerStore;
  /**
   * Shared by the schedulers of one process, so that their transactions on requests are batched together. Created here when it is missing.
   */
  readonly requests?: { readonly reader: RequestReader; readonly writes: RequestWrites };
  readonly groups: Pick<ServerGroupStore, "pinCell" | "unpinServers">;
  readonly reservations: SchedulerReservations;
  /** The accepted moves. Without this store, the scheduler moves no servers. */
  readonly moves?: SchedulerMoves;
  /** The host aggregates. Without this store, there are none. */
  readonly aggregates?: Pick<AggregateStore, "version" | "aggregates">;
  /** The store that keeps decisions for later explanations. Without it, none are kept. */
  readonly decisions?: Pick<DecisionStore, "putDecisions" | "purgeDecisions">;
  /**
   * The cloud's own host filters, applied after Nova's. Each has a unique name. Every scheduler must have the same filters, and the api
   * too, for its explanations.
   */
  readonly filters?: readonly HostFilter[];
  /** The settings that operators change while schedulers run. Without this store, the scheduler keeps the settings it was started with. */
  readonly operatorSettings?: Pick<SettingsStore, "read">;
  /** The API tier's own bus. */
  readonly bus: SchedulerBus;
  /** Cells that are open already. */
  readonly cells: readonly SchedulerCell[];
  /** Opens a cell that the API database names and `cells` does not contain. */
  readonly openCell?: (record: CellRecord) => Promise<OpenedCell>;
  readonly softState: SoftState;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
}

export interface Scheduler extends Service {
  /** True while the scheduler takes requests from the work queue. Even when it does not, its sweeps place requests. */
  readonly ready: boolean;
}

/** Creates a scheduler. Any number of schedulers may run side by side. */
export function createScheduler(deps: SchedulerDeps, settings: SchedulerSettings): Scheduler {
  const parts = assemble(deps, settings);
  let ready = false;
  let closing: Promise<void> | null = null;
  const patience = new Patience({ logger: deps.logger, isTransient: isUnavailable, clock: deps.clock });
  const close = async () => {
    ready = false;
    patience.giveUp();
    await Promise.all([parts.sweep.stop(), parts.arrivals.stop(), parts.moves?.stop(), parts.picks.stop()]);
    await parts.purge.stop();
    await Promise.all([parts.live.stop(), parts.aggregates.stop()]);
    await parts.intake.stop();
    await parts.decisions.stop();
    await parts.announcer.close();
    await parts.cells.close();
  };
  return {
    get ready() {
      const streams = deps.bus.streamState();
      return ready && parts.intake.listening && (streams === "there" || streams === "full");
    },
    async start() {
      try {
        await Promise.all([patience.until("the cells' records", () => parts.cells.start()), parts.live.start()]);
        await patience.until("the host aggregates", () => parts.aggregates.start());
        await parts.cells.whenSeen(VIEWS_LOADED_MS);
        await parts.announcer.start();
        parts.picks.start();
        parts.decisions.start();
        parts.sweep.start();
        parts.arrivals.start();
        parts.moves?.start();
        parts.purge.start();
        ready = true;
        // Sweeps place requests without the bus, only later, so an unreachable bus must not keep the scheduler from starting.
        const listening = patience.until("the work queue", () => parts.intake.start());
        listening.catch((error) => closing ?? parts.events.queueRefused(error));
        await withDeadline(listening, LISTENING_MS, "listening to the work queue", deps.clock).catch((error) => {
          if (!(error instanceof DeadlineError)) throw error;
        });
      } catch (error) {
        closing ??= close();
        await closing;
        throw error;
      }
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function assemble(deps: SchedulerDeps, settings: SchedulerSettings) {
  const { store, bus, clock, softState, tracing } = deps;
  const hosts = new HostChooser();
  const events: SchedulerEvents = new SchedulerEvents({
    logger: deps.logger,
    registry: deps.registry,
    clock,
    claimsInFlight: () => cells.all().reduce((sum, link) => sum + link.claims.count, 0),
    requestsInFlight: () => intake.size,
    rankings: hosts.classes,
  });
  const slice = new OwnSlice(settings.schedulerId);
  const touchHost = (cell: string, host: string) => cells.get(cell)?.touchHost(host);
  const failures = new BuildFailureCounts(softState, touchHost);
  const picksOfOthers = new RecentPicks();
  const open = deps.openCell ?? null;
  const onLinked = ({ facts }: SchedulerCell) => facts && rules.aggregates.tell(facts);
  const cells: CellKeeper = new CellKeeper(
    { store, given: deps.cells, open, failures, onLinked, clock, events },
    settings,
  );
  const rules: ReturnType<typeof assembleRules> = assembleRules(deps, settings, {
    cells,
    slice,
    failures,
    picksOfOthers,
    events,
  });
  const picks = new PickTeller({
    softState,
    schedulerId: settings.schedulerId,
    picksOfOthers,
    onChanged: ({ cell, host }) => touchHost(cell, host),
    clock,
    events,
  });
  const decisions = new DecisionRecorder({ store: deps.decisions ?? null, clock, events }, settings);
  const placing = assemblePlacing(deps, settings, { hosts, cells, rules, picks, decisions, events });
  const reader = deps.requests?.reader ?? new RequestReader(store, clock, settings);
  const placer = new WorkPlacer({ ...placing, reader, events });
  const intake: RequestIntake = new RequestIntake({ bus, placer, events, tracing, clock }, settings);
  const newId = newRowUuid;
  const sweep = new RequestSweep({ store, links: cells, intake, clock, events, newId }, settings);
  const arrivals = new ArrivalSweep({ store, links: cells, clock, events }, settings);
  const moves = deps.moves ? new MoveSweep({ store: deps.moves, links: cells, intake, clock, events }, settings) : null;
  const purge = new ReservationPurge({ store: deps.reservations, clock, events }, settings);
  const announcer = new SelfAnnouncer({ softState, slice, failures, clock, events }, settings);
  const { live, aggregates } = rules;
  return { events, cells, intake, sweep, arrivals, moves, purge, announcer, picks, decisions, live, aggregates };
}

/** Constructs the objects that place requests, both single ones and those of one call for several servers. */
function assemblePlacing(
  { store, groups, reservations, moves, clock, requests }: SchedulerDeps,
  settings: SchedulerSettings,
  parts: {
    readonly hosts: HostChooser;
    readonly cells: CellKeeper;
    readonly decisions: DecisionRecorder;
    readonly rules: ReturnType<typeof assembleRules>;
    readonly picks: PickTeller;
    readonly events: SchedulerEvents;
  },
) {
  const { cells: links, rules, picks, events } = parts;
  const { live, aggregates, ...ranking } = rules;
  const newId = newRowUuid;
  const writes = requests?.writes ?? new RequestWrites(store, settings.batchMax);
  const moveRows = moves ? new MoveWrites(moves, settings.batchMax) : null;
  const groupPicks = new GroupPicks(clock, settings.claimExpiryMs);
  const choosing = { ...ranking, live, settings, clock, events, groupPicks };
  const chooser = new RequestChooser({ chooser: parts.hosts, ...choosing });
  const catchUp = () =>
    withDeadline(aggregates.refresh(), settings.seenDeadlineMs, "reading the aggregates", clock).catch((error) =>
      events.refreshFailed("aggregates", error),
    );
  const context = requestContext(live, aggregates);
  const views = new SchedulerViews({ cells: links, chooser, context, catchUp }, settings);
  const claims = new ClaimReserver({ links, groupPicks, onPick: (cell, host) => picks.picked(cell, host) });
  const shared = { views, claims, events, newId };
  const placer = new RequestPlacer(
    {
      ...shared,
      requests: writes,
      groups: new GroupPinner({ store: groups, links }),
      decisions: parts.decisions,
      clock,
    },
    settings,
  );
  const inFlight = new GroupInFlight({ store, reservations, links });
  const multiCreates = new MultiCreatePlacer({ store, reservations, links, placer, writes, inFlight, events, newId });
  const movePlacer = moveRows && new MovePlacer({ ...shared, rows: moveRows }, settings);
  return { placer, multiCreates, writes, moves: moveRows && movePlacer && { rows: moveRows, placer: movePlacer } };
}

/** Constructs the filters and weighers that choose between hosts, following the operators' settings. */
function assembleRules(
  deps: SchedulerDeps,
  settings: SchedulerSettings,
  knowing: {
    readonly cells: CellKeeper;
    readonly slice: OwnSlice;
    readonly failures: BuildFailureCounts;
    readonly picksOfOthers: RecentPicks;
    readonly events: SchedulerEvents;
  },
) {
  const { cells, slice, failures, picksOfOthers, events } = knowing;
  const { clock } = deps;
  const pollMs = settings.settingsPollMs;
  const live = new LiveSettings(
    { store: deps.operatorSettings ?? NOTHING_SET, events, clock },
    { pollMs, own: ownSchedulingSettings(settings) },
  );
  const aggregates = new AggregateKeeper(
    {
      store: deps.aggregates ?? NO_AGGREGATES,
      factsOfCells: () => cells.all().flatMap(({ facts }) => facts ?? []),
      defaultZone: () => live.current.defaultAvailabilityZone,
      ...{ clock, events },
    },
    { pollMs },
  );
  const ownFilters = deps.filters ?? [];
  const clash = nameClash(ownFilters);
  assert(clash === null, clash ?? "");
  const fragmentation = new GpuFragmentation(() => cells.all().map(({ view }) => view));
  const weighers = new WeigherSet({
    buildFailure: buildFailures((cell) => failures.of(cell)),
    ownSlice: slice,
    recentPicks: picksOfOthers,
    gpuFragmentation: fragmentation,
  });
  const onArrival = ({ groups }: HostRequest, view: LedgerView) => {
    if (live.current.multipliers.gpu_fragmentation !== 0) fragmentation.arrive(groups, view);
  };
  return { live, aggregates, weighers, ownFilters, onArrival };
}

/**
 * Returns a function that gives request filters their context. The context is a new object only after operators have changed something,
 * because cached translations are valid for one context object.
 */
function requestContext(live: LiveSettings, aggregates: AggregateKeeper): () => RequestContext {
  let context: RequestContext | null = null;
  return () => {
    const settings = live.current;
    const { all } = aggregates.index;
    if (context?.aggregates !== all || context.settings !== settings) context = { aggregates: all, settings };
    return context;
  };
}

const NOTHING_SET: Pick<SettingsStore, "read"> = { read: async () => ({ version: 0, values: {} }) };
