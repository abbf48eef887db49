import { PostgresConsoleTokenStore } from "../../adapters/postgres/api/postgres-console-token-store.ts";
import { endPool } from "../../adapters/postgres/client/end-pool.ts";
import { openLoggedPool } from "../../adapters/postgres/client/logged-pool.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { systemClock } from "../../runtime/clock.ts";
import { closeOnce } from "../../runtime/close-once.ts";
import type { ServiceContext } from "../../runtime/lifecycle.ts";
import { createProbes } from "../../runtime/probes.ts";
import { type ConsoleProxy, createConsoleProxy } from "./service.ts";
import type { ConsoleProxyOptions } from "./settings.ts";

const CONNECTIONS_MAX = 4;

/** A console proxy with its database and its probes, which it owns. It also starts while the database is away. */
export function openConsoleProxy({ settings, logger }: ServiceContext<ConsoleProxyOptions>): ConsoleProxy {
  const { databaseUrl: url, metricsListen } = settings;
  const database = { what: "API database", logger, applicationName: "berth console-proxy" };
  const pool = openLoggedPool({ ...database, url, connectionsMax: CONNECTIONS_MAX });
  const tokens = new PostgresConsoleTokenStore(pool);
  const registry = createRegistry({ service: "console-proxy" });
  const proxy = createConsoleProxy(
    { tokens, clock: systemClock, logger, registry },
    { ...settings, allowedOrigins: settings.allowedOrigins ?? [] },
  );
  const answers = () => tokens.token("", systemClock.now()).then(() => true);
  const probes = createProbes({ listen: metricsListen, registry, isReady: () => answers().catch(() => false) });
  return {
    get address() {
      return proxy.address;
    },
    async start() {
      await probes.start();
      await proxy.start();
    },
    close: closeOnce(async () => {
      await proxy.close();
      await probes.close();
      await endPool(pool);
    }),
  };
}
