import { randomUUID } from "node:crypto";
import { showExpiry } from "../../adapters/grpc/certificate-expiry.ts";
import { createGrpcAgentListener } from "../../adapters/grpc/grpc-listener.ts";
import { tlsFilesOf } from "../../adapters/grpc/tls-files.ts";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { NEUTRON, NeutronClient } from "../../adapters/openstack/neutron-client.ts";
import { openNeighbours } from "../../adapters/openstack/open-neighbours.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { endPool } from "../../adapters/postgres/client/end-pool.ts";
import { openLoggedPool } from "../../adapters/postgres/client/logged-pool.ts";
import { isUnavailable } from "../../adapters/postgres/client/run-stored.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { claimCellName } from "../../adapters/postgres/schema/claim-cell-name.ts";
import { describeUnready } from "../../adapters/postgres/schema/migrate.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { startTracing } from "../../adapters/telemetry/start-tracing.ts";
import { addressText } from "../../runtime/address-text.ts";
import { systemClock } from "../../runtime/clock.ts";
import { closeOnce } from "../../runtime/close-once.ts";
import type { ServiceContext } from "../../runtime/lifecycle.ts";
import { Patience } from "../../runtime/patience.ts";
import { createProbes } from "../../runtime/probes.ts";
import type { Service } from "../../runtime/service.ts";
import { createConductor } from "./service.ts";
import { type ConductorOptions, conductorSettings } from "./settings.ts";

/** A conductor with its real adapters and its probes, all of which it owns. */
export interface ConductorProcess extends Service {
  /** The addresses of the agents' port and of the probes, known after `start`. */
  readonly note: string;
}

/** Binds the agents' port. Everything else begins with `start`. */
export async function openConductor(
  { settings: options, logger }: ServiceContext<ConductorOptions>,
  otlpEndpoint: string | null,
): Promise<ConductorProcess> {
  const settings = conductorSettings(options, randomUUID());
  const about = `berth conductor ${settings.name}`;
  const pool = openLoggedPool({
    url: options.cellDatabaseUrl,
    applicationName: about,
    connectionsMax: options.databaseConnections,
    ...{ what: "the cell's database", logger },
  });
  const patience = new Patience({ logger, isTransient: isUnavailable });
  const onEvent = (event: { readonly kind: string }) => logger.info({ ...event }, "the connection to NATS has changed");
  const bus = createNatsBus({ url: options.natsUrl, name: about, onEvent });
  const tracing = await startTracing({ service: "berth-conductor", instance: settings.name, exportTo: otlpEndpoint });
  const registry = createRegistry({ service: "conductor" });
  const listen = addressText(options.listen);
  const tls = tlsFilesOf(options);
  const listener = await createGrpcAgentListener({ listen, tls, plainText: options.plainText });
  showExpiry(tls, { registry, logger, nowMs: systemClock.now(), isReread: false });
  const { neighbours, ...neighbourClients } = openCellNeighbours(options);
  const conductor = createConductor(
    {
      ...neighbourClients,
      store: new PostgresCellStore(pool),
      ledger: new PostgresLedger(pool),
      bus,
      listener,
      clock: systemClock,
      logger,
      registry,
      tracing,
    },
    settings,
  );
  const probes = createProbes({ listen: options.metricsListen, registry, isReady: () => conductor.ready });
  return {
    get note() {
      return `agents at ${listener.address}, probes at ${probes.address.host}:${probes.address.port}`;
    },
    async start() {
      await probes.start();
      const unready = await patience.until("the cell's database", () =>
        describeUnready(pool, "cell", "the cell's database"),
      );
      if (unready !== null) throw new Error(unready);
      await patience.until("the cell's database", () => claimCellName(pool, options.cell));
      await conductor.start();
    },
    close: closeOnce(async () => {
      patience.giveUp();
      await conductor.close();
      await Promise.all([probes.close(), bus.close(), tracing.close()]);
      await neighbours?.close();
      await endPool(pool);
    }),
  };
}

/** Opens the clients of the neighbours that the settings name. Throws `SettingsError` when the settings of Keystone are incomplete. */
function openCellNeighbours(options: ConductorOptions) {
  const [hasNeutron, hasCinder] = [options.networks === "neutron", options.volumes === "cinder"];
  const neighbours = hasNeutron || hasCinder ? openNeighbours(options) : null;
  if (neighbours === null) return { neighbours };
  const { neutronUrl, cinderUrl } = options;
  const neutron = () => neighbours.client({ ...NEUTRON, url: neutronUrl });
  return {
    neighbours,
    ...(hasNeutron && { networking: new NeutronClient(neutron()) }),
    ...(hasCinder && { blockStorage: new CinderClient(neighbours.client({ ...CINDER, url: cinderUrl })) }),
  };
}
