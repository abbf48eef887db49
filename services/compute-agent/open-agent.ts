import { join } from "node:path";
import { ConsoleListener } from "../../adapters/consoles/console-listener.ts";
import { showExpiry } from "../../adapters/grpc/certificate-expiry.ts";
import { createGrpcDialer } from "../../adapters/grpc/grpc-dialer.ts";
import { tlsFilesOf } from "../../adapters/grpc/tls-files.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { startTracing } from "../../adapters/telemetry/start-tracing.ts";
import { systemClock } from "../../runtime/clock.ts";
import { closeOnce } from "../../runtime/close-once.ts";
import type { ServiceContext } from "../../runtime/lifecycle.ts";
import { createProbes } from "../../runtime/probes.ts";
import { DATA_DIR, requireDirectory } from "../../runtime/require-directory.ts";
import type { Service } from "../../runtime/service.ts";
import { FileJournal } from "./file-journal.ts";
import { machineBootedAtMs } from "./machine-booted-at.ts";
import { openDriver } from "./open-driver.ts";
import { type ComputeAgent, createComputeAgent } from "./service.ts";
import type { AgentOptions } from "./settings.ts";

/** An agent with its real adapters, its driver and its probes, all of which it owns. */
export interface AgentProcess extends Service {
  /** The address of the probes, known after `start`. */
  readonly note: string;
  /** Looks at the hosts now: reads the hosts file, or the machine, again. */
  lookAtHosts(): void;
}

/** `crash` ends the process at once, like `kill -9`. A script of the fake driver may call it. */
export async function openAgent(
  { settings: options, logger, fail }: ServiceContext<AgentOptions>,
  surroundings: { readonly otlpEndpoint: string | null; readonly crash: () => void },
): Promise<AgentProcess> {
  requireDirectory(DATA_DIR, options.dataDir);
  const clock = systemClock;
  const loseConnections = () => agent.loseConnections();
  const { crash } = surroundings;
  const opened = await openDriver(options, { clock, logger, crash, loseConnections });
  const { driver, source } = opened;
  const { hosts, warnings } = source.look();
  for (const warning of warnings)
    logger.warn({ warning }, "a value of the host is unknown or doubtful, as the warning says");
  const { agentId, buildLimit, conductors, resumeGuests: resumesGuests } = options;
  const tracing = await startTracing({
    service: "berth-compute-agent",
    instance: agentId,
    exportTo: surroundings.otlpEndpoint,
  });
  const registry = createRegistry({ service: "compute-agent" });
  const journal = new FileJournal(join(options.dataDir, `${agentId}.journal`));
  const { consoleListen, consoleAddress: advertised } = options;
  const consoles = consoleListen === null ? null : new ConsoleListener({ clock, listen: consoleListen, advertised });
  const tls = tlsFilesOf(options);
  const dialer = createGrpcDialer({ tls });
  showExpiry(tls, { registry, logger, nowMs: clock.now(), isReread: true });
  const agent: ComputeAgent = createComputeAgent(
    { dialer, journal, driver, clock, logger, registry, tracing, consoles, fail },
    {
      agentId,
      conductors,
      hosts,
      buildLimit,
      resumesGuests,
      // A copy of another machine's files does not say when that machine booted.
      ...(options.sysroot === null && { bootedAtMs: machineBootedAtMs(clock.now()) }),
      watch: { source, everyMs: options.updateResourcesSeconds * 1_000 },
    },
  );
  const probes = createProbes({
    listen: options.metricsListen,
    registry,
    isReady: () => agent.ready,
    pages: {
      "/guests": async () => ({
        ...{ hosts: hosts.map((host) => host.name), guests: await opened.guests() },
        closedNodes: opened.closedNodes?.() ?? {},
      }),
    },
  });
  return {
    get note() {
      return `${hosts.length} hosts, probes at ${probes.address.host}:${probes.address.port}`;
    },
    lookAtHosts: () => agent.lookAtHosts(),
    async start() {
      await probes.start();
      await consoles?.start();
      await opened.ready?.();
      await agent.start();
    },
    close: closeOnce(async () => {
      opened.leaveNodes?.();
      await agent.close();
      await consoles?.close();
      opened.close();
      await Promise.all([probes.close(), tracing.close()]);
    }),
  };
}
