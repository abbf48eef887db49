import { createRegistry } from "../adapters/telemetry/metrics.ts";
import type { ConsoleTokenStore } from "../core/stores/api/console-token-store.ts";
import { addressText } from "../runtime/address-text.ts";
import { systemClock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { ApiSettings } from "../services/api/settings.ts";
import { createConsoleProxy } from "../services/console-proxy/service.ts";

type ConsoleUrls = Pick<ApiSettings, "serialConsoleBaseUrl" | "novncproxyBaseUrl">;

const SESSIONS_MAX = 100;

/**
 * Starts the console proxy of a cloud in one process, on a free port of loopback. Returns the proxy's addresses for the settings of the
 * api, or null when the cloud has no consoles. When `consoleWeb` is a directory of noVNC's files, browsers open graphical consoles with
 * them.
 */
export async function startCloudConsoles(
  {
    consoles = false,
    consoleWeb: web = null,
    logger,
  }: { readonly consoles?: boolean; readonly consoleWeb?: string | null; readonly logger: Logger },
  tokens: ConsoleTokenStore,
): Promise<{ readonly urls: ConsoleUrls; close(): Promise<void> }> {
  if (!consoles) return { urls: { serialConsoleBaseUrl: null, novncproxyBaseUrl: null }, close: async () => undefined };
  const registry = createRegistry({ service: "console-proxy", withProcess: false });
  const proxy = createConsoleProxy(
    { tokens, clock: systemClock, logger: logger.child({ service: "console-proxy" }), registry },
    { listen: { host: "127.0.0.1", port: 0 }, allowedOrigins: [], web, sessionsMax: SESSIONS_MAX },
  );
  await proxy.start();
  const address = addressText(proxy.address);
  const urls = { serialConsoleBaseUrl: `ws://${address}/`, novncproxyBaseUrl: `http://${address}/vnc_auto.html` };
  return { urls, close: () => proxy.close() };
}
