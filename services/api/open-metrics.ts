import type { Registry } from "prom-client";
import type { Logger } from "../../runtime/logger.ts";
import { createProbes } from "../../runtime/probes.ts";
import type { Service } from "../../runtime/service.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";

/**
 * Serves /metrics on a separate address, because metrics describe the whole cloud without authentication, while the API's address is for
 * clients. Its /readyz reports `ready` as soon as it serves, with the `remarks` that are not for clients. Whether the API serves is
 * reported at the API's own address.
 */
export function openMetrics(
  listen: HostPort,
  registry: Registry,
  logger: Logger,
  remarks: () => readonly string[] = () => [],
): Service {
  const probes = createProbes({ listen, registry, isReady: () => true, remarks });
  return {
    async start() {
      await probes.start();
      logger.info({ ...probes.address }, "metrics and probes are served");
    },
    close: () => probes.close(),
  };
}
