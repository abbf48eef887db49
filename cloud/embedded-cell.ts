import { MemoryBroker } from "../adapters/memory/bus/memory-broker.ts";
import { cellPermissionsOfApi, cellStreams, conductorPermissions } from "../adapters/nats/streams.ts";
import { PostgresCellStore } from "../adapters/postgres/cell/postgres-cell-store.ts";
import { PostgresHostAdminStore } from "../adapters/postgres/cell/postgres-host-admin-store.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { followerEvents } from "../adapters/postgres/follower/follower-telemetry.ts";
import { LedgerFollower } from "../adapters/postgres/follower/ledger-follower.ts";
import { LedgerView } from "../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../core/scheduling/live-cell-facts.ts";
import type { CellStore } from "../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../core/stores/cell/host-admin-store.ts";
import type { Bus } from "../runtime/bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { overriding } from "../runtime/overriding.ts";
import { placementCell } from "../services/api/placement/placement-cell.ts";
import type { PlacementCell } from "../services/api/placement/service.ts";
import { type CellServices, CONNECTIONS_MAX } from "./cell-services.ts";
import type { BreakableCell } from "./cloud-faults.ts";
import { type CloudObserver, observeCellStore } from "./observe-stores.ts";
import { Severable } from "./severable.ts";

export interface EmbeddedCellOptions {
  readonly name: string;
  readonly databaseUrl: string;
  /**
   * Builds the services inside the cell, in this thread or another. Each call of `connectBus` opens another connection to the cell's bus.
   */
  readonly createServices: (connectBus: () => Bus) => CellServices;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: CloudObserver | null;
}

/** A cell of a cloud in one process, with the objects through which the API tier uses it. */
export interface EmbeddedCell extends CellServices {
  readonly name: string;
  readonly databaseUrl: string;
  /** The API tier's store; conductors have another one. */
  readonly store: CellStore;
  readonly admin: HostAdminStore;
  readonly bus: Bus;
  /** The cell's ledger as the Placement API sees it. */
  readonly placement: PlacementCell;
  readonly view: LedgerView;
  readonly facts: LiveCellFacts;
  readonly follower: LedgerFollower;
  /** The API tier's way to the cell, which can be cut. */
  readonly link: Pick<BreakableCell["link"], "isSevered" | "sever" | "heal">;
}

/** Builds a cell on a migrated database: its streams, its services, and a view of it. */
export function createEmbeddedCell(options: EmbeddedCellOptions): EmbeddedCell {
  const { name, databaseUrl, clock, observer } = options;
  const broker = new MemoryBroker(clock);
  const pool = createPool({ url: databaseUrl, applicationName: "berth api tier", connectionsMax: CONNECTIONS_MAX });
  const store = new PostgresCellStore(pool);
  const view = new LedgerView();
  const facts = new LiveCellFacts(name, view);
  const follower = new LedgerFollower({
    ...{ cell: name, databaseUrl, view: viewWithFacts(view, facts), servers: true },
    ...{ clock, events: followerEvents(options.logger) },
  });
  const bus = broker.connect(cellPermissionsOfApi(name));
  const services = options.createServices(() => broker.connect(conductorPermissions(name)));
  const cut = `cell ${name} is cut off (a fault of the dashboard's panel)`;
  const ends = [observeCellStore(store, observer), new PostgresHostAdminStore(pool)] as const;
  const [ownStore, admin] = [new Severable(ends[0], cut), new Severable(ends[1], cut)];
  const publishing = new Severable({ publish: bus.publish.bind(bus) }, cut);
  const placement = placementCell(name, pool, view, follower);
  const ledger = new Severable(placement.store, cut);
  const parts = [ownStore, admin, publishing, ledger];
  return {
    name,
    databaseUrl,
    store: ownStore.target,
    admin: admin.target,
    placement: { ...placement, store: ledger.target },
    bus: overriding(bus, { publish: (...given) => publishing.target.publish(...given) }),
    link: {
      get isSevered() {
        return ownStore.isSevered;
      },
      sever: () => {
        for (const part of parts) part.sever();
      },
      heal: () => {
        for (const part of parts) part.heal();
      },
    },
    faults: services.faults,
    view,
    facts,
    follower,
    get ready() {
      return services.ready;
    },
    runningGuests: () => services.runningGuests(),
    copies: () => services.copies(),
    async start() {
      follower.start();
      await bus.ensureStreams(cellStreams(name));
      await services.start();
    },
    async close() {
      try {
        await services.close();
      } finally {
        await follower.close();
        broker.close();
        await pool.end();
      }
    },
  };
}
