import { pino } from "pino";
import { MemoryAggregateStore } from "../adapters/memory/api/memory-aggregate-store.ts";
import { MemoryApiStore } from "../adapters/memory/api/memory-api-store.ts";
import { MemoryHostMapStore } from "../adapters/memory/api/memory-host-map-store.ts";
import { MemoryImageStore } from "../adapters/memory/api/memory-image-store.ts";
import { MemoryKeypairStore } from "../adapters/memory/api/memory-keypair-store.ts";
import { MemoryMoveStore } from "../adapters/memory/api/memory-move-store.ts";
import { MemoryPortStore } from "../adapters/memory/api/memory-port-store.ts";
import { MemoryQuotaStore } from "../adapters/memory/api/memory-quota-store.ts";
import { MemoryReservationStore } from "../adapters/memory/api/memory-reservation-store.ts";
import { MemoryServerGroupStore } from "../adapters/memory/api/memory-server-group-store.ts";
import { MemorySettingsStore } from "../adapters/memory/api/memory-settings-store.ts";
import { MemoryBroker } from "../adapters/memory/bus/memory-broker.ts";
import { MemorySoftState } from "../adapters/memory/memory-soft-state.ts";
import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import { systemClock as clock } from "../runtime/clock.ts";
import { computeDocument } from "../services/api/compute/openapi/compute-document.ts";
import type { KnownRoute } from "../services/api/http/known-paths.ts";
import { operatorsDocument } from "../services/api/operators/operators-document.ts";
import { openApiDocument } from "../services/api/placement/openapi.ts";
import { createApi } from "../services/api/service.ts";
import { DEFAULT_API_SETTINGS } from "../services/api/settings.ts";
import type { ReferenceName } from "./contents.ts";

/** The OpenAPI documents of the APIs, by the page of the site that shows each. */
export type References = Readonly<Record<ReferenceName, object>>;

/** Makes all documents. Those that come from registered routes are of an api over empty stores, which registers every route. */
export async function readReferences(): Promise<References> {
  const routes = await readRoutes();
  return {
    compute: computeDocument(routes, "/v2.1"),
    operators: operatorsDocument(routes, "/berth/v1"),
    placement: openApiDocument("/placement"),
  };
}

async function readRoutes(): Promise<readonly KnownRoute[]> {
  const quotas = new MemoryQuotaStore({ clock });
  const store = new MemoryApiStore({ clock, quotas });
  const aggregates = new MemoryAggregateStore({ clock });
  const broker = new MemoryBroker(clock);
  const softState = new MemorySoftState(clock);
  const api = createApi(
    {
      ...{ store, quotas, clock, cells: [], bus: broker.connect(), tracing: noTracing },
      groups: new MemoryServerGroupStore({ requests: store }),
      reservations: new MemoryReservationStore({ clock, requests: store }),
      operators: {
        ...{ aggregates, ratios: aggregates, softState },
        settings: new MemorySettingsStore(),
        hostMap: new MemoryHostMapStore(),
      },
      images: new MemoryImageStore(),
      moves: new MemoryMoveStore(clock),
      networkPorts: new MemoryPortStore(clock, { requests: store }),
      keypairs: new MemoryKeypairStore(),
      logger: pino({ level: "silent" }),
      registry: createRegistry({ service: "api", withProcess: false }),
    },
    { ...DEFAULT_API_SETTINGS, dashboard: true },
  );
  try {
    await api.http.ready();
    return api.http.knownRoutes?.() ?? [];
  } finally {
    await api.close();
    await softState.close();
    broker.close();
  }
}
