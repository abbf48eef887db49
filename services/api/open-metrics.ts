import type { Registry } from "prom-client";
import type { Logger } from "../../runtime/logger.ts";
import { createProbes } from "../../runtime/probes.ts";
import type { Service } from "../../runtime/service.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";

/**
 * Serves /metrics on an address of its own: they tell of the whole cloud and do not ask who reads them, while the API's address is for
 * clients. Its /readyz says `ready` as soon as it serves, with the `remarks` that are not for clients; whether the API serves is asked at the
 * API's own address.
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
      logger.info({ ...probes.address }, "metrics listen");
    },
    close: () => probes.close(),
  };
}
