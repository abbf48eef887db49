import { join } from "node:path";
import { createGrpcDialer } from "../../adapters/grpc/grpc-dialer.ts";
import { tlsFilesOf } from "../../adapters/grpc/tls-files.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { startTracing } from "../../adapters/telemetry/tracing.ts";
import { systemClock } from "../../runtime/clock.ts";
import { closeOnce } from "../../runtime/close-once.ts";
import type { ServiceContext } from "../../runtime/lifecycle.ts";
import { createProbes } from "../../runtime/probes.ts";
import type { Service } from "../../runtime/service.ts";
import { FakeDriver } from "./fake-driver.ts";
import { FileJournal } from "./file-journal.ts";
import { type ComputeAgent, createComputeAgent } from "./service.ts";
import { type AgentOptions, hostSourceOf } from "./settings.ts";

/** An agent with its real adapters, the fake driver and its probes, all of which it owns. */
export interface AgentProcess extends Service {
  /** The address of the probes, known after `start`. */
  readonly note: string;
  /** Looks at the hosts now: reads the hosts file, or the machine, again. */
  lookAtHosts(): void;
}

/** `crash` ends the process at once, like `kill -9`. A script of the fake driver may call it. */
export function openAgent(
  { settings: options, logger, fail }: ServiceContext<AgentOptions>,
  surroundings: { readonly otlpEndpoint: string | null; readonly crash: () => void },
): AgentProcess {
  const source = hostSourceOf(options);
  const { hosts, warnings } = source.look();
  for (const warning of warnings) logger.warn({ warning }, "a value of the host is unknown or doubtful");
  const clock = systemClock;
  const { agentId, seed, buildLimit, conductors, fakeByMetadata: byMetadata } = options;
  const tracing = startTracing({
    service: "berth-compute-agent",
    instance: agentId,
    exportTo: surroundings.otlpEndpoint,
  });
  const registry = createRegistry({ service: "compute-agent" });
  const scripts = new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake] as const])));
  const loseConnections = () => agent.loseConnections();
  const driver = new FakeDriver({ clock, seed, scripts, byMetadata, crash: surroundings.crash, loseConnections });
  const journal = new FileJournal(join(options.dataDir, `${agentId}.journal`));
  const dialer = createGrpcDialer({ tls: tlsFilesOf(options) });
  const agent: ComputeAgent = createComputeAgent(
    { dialer, journal, driver, clock, logger, registry, tracing, fail },
    { agentId, conductors, hosts, buildLimit, watch: { source, everyMs: options.updateResourcesSeconds * 1_000 } },
  );
  const probes = createProbes({
    listen: options.metricsListen,
    registry,
    isReady: () => agent.ready,
    pages: { "/guests": () => ({ hosts: hosts.map((host) => host.name), guests: driver.guests() }) },
  });
  return {
    get note() {
      return `${hosts.length} hosts, probes at ${probes.address.host}:${probes.address.port}`;
    },
    lookAtHosts: () => agent.lookAtHosts(),
    async start() {
      await probes.start();
      await agent.start();
    },
    close: closeOnce(async () => {
      await agent.close();
      await Promise.all([probes.close(), tracing.close()]);
    }),
  };
}
