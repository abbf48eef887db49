import { createRegistry } from "../adapters/telemetry/metrics.ts";
import type { ConsoleTokenStore } from "../core/stores/api/console-token-store.ts";
import { addressText } from "../runtime/address-text.ts";
import { systemClock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { createConsoleProxy } from "../services/console-proxy/service.ts";

const SESSIONS_MAX = 100;

/** Starts the console proxy of a cloud in one process, on a free port of loopback. Returns its address as the api is told it, null without consoles. */
export async function startCloudConsoles(
  { consoles = false, logger }: { readonly consoles?: boolean; readonly logger: Logger },
  tokens: ConsoleTokenStore,
): Promise<{ readonly url: string | null; close(): Promise<void> }> {
  if (!consoles) return { url: null, close: async () => undefined };
  const registry = createRegistry({ service: "console-proxy", withProcess: false });
  const proxy = createConsoleProxy(
    { tokens, clock: systemClock, logger: logger.child({ service: "console-proxy" }), registry },
    { listen: { host: "127.0.0.1", port: 0 }, allowedOrigins: [], sessionsMax: SESSIONS_MAX },
  );
  await proxy.start();
  return { url: `ws://${addressText(proxy.address)}/`, close: () => proxy.close() };
}
