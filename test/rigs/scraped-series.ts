import type { Registry } from "prom-client";
import { registerExpiry } from "../../adapters/grpc/certificate-expiry.ts";
import { registerFollowerMetrics } from "../../adapters/postgres/follower/follower-telemetry.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { systemClock } from "../../runtime/clock.ts";
import { createLogger } from "../../runtime/logger.ts";
import { ApiEvents } from "../../services/api/events.ts";
import { AgentEvents } from "../../services/compute-agent/events.ts";
import { ConductorEvents } from "../../services/conductor/events.ts";
import { SchedulerEvents } from "../../services/scheduler/events.ts";

const silentLogger = createLogger({ name: "test", level: "silent" });

/** The part of Prometheus's configuration that is read. */
export interface Scrapes {
  readonly scrape_configs: readonly {
    readonly static_configs: readonly {
      readonly targets: readonly string[];
      readonly labels?: Readonly<Record<string, string>>;
    }[];
  }[];
}

/** The metrics that each service registers when it starts, by a word that the names of its targets contain. */
const REGISTRIES: Readonly<Record<string, () => Registry>> = {
  api: () => {
    const registry = createRegistry({ service: "api" });
    new ApiEvents(silentLogger, registry);
    registerFollowerMetrics(registry, []);
    return registry;
  },
  scheduler: () => {
    const registry = createRegistry({ service: "scheduler" });
    const rankings = { size: 0, memoryBytes: 0 };
    new SchedulerEvents({ ...own(registry), claimsInFlight: none, requestsInFlight: none, rankings });
    registerFollowerMetrics(registry, []);
    return registry;
  },
  conductor: () => {
    const registry = createRegistry({ service: "conductor" });
    new ConductorEvents({ ...own(registry), taskCount: none });
    registerExpiry(registry, () => null);
    return registry;
  },
  agent: () => {
    const registry = createRegistry({ service: "compute-agent" });
    new AgentEvents({ ...own(registry), tracing: noTracing, fail: none, guestCount: none });
    registerExpiry(registry, () => null);
    return registry;
  },
};

/** Every series that Prometheus gets from our services with this configuration: its name, and the labels that it may have. */
export function scrapedSeries({ scrape_configs: jobs }: Scrapes): ReadonlyMap<string, ReadonlySet<string>> {
  const series = new Map<string, Set<string>>();
  for (const [word, open] of Object.entries(REGISTRIES)) {
    const groups = jobs.flatMap((job) => job.static_configs).filter(({ targets }) => targets.some(isOf(word)));
    const ofTarget = ["job", "instance", "service", ...groups.flatMap(({ labels }) => Object.keys(labels ?? {}))];
    for (const [name, labels] of registered(open())) {
      series.set(name, new Set([...(series.get(name) ?? []), ...labels, ...ofTarget]));
    }
  }
  return series;
}

/** Names of the series in an expression of PromQL. */
export function namesIn(expr: string): readonly string[] {
  const bare = expr.replaceAll(/\b(by|without|on|ignoring)\s*\([^)]*\)|\{[^}]*\}|\[[^\]]*\]|"[^"]*"/g, " ");
  return [...bare.matchAll(/[a-zA-Z_:][\w:]*(?!\w|\s*\()/g)]
    .map(([name]) => name)
    .filter((name) => !["and", "or", "unless", "bool", "offset"].includes(name));
}

/** The labels by which an expression aggregates. */
export function groupsOf(expr: string): readonly string[] {
  return [...expr.matchAll(/\bby\s*\(([^)]*)\)/g)].flatMap(([, labels = ""]) =>
    labels.split(",").map((label) => label.trim()),
  );
}

function registered(registry: Registry): readonly (readonly [string, readonly string[]])[] {
  return registry.getMetricsAsArray().flatMap((metric) => {
    const { name, labelNames, type } = metric as unknown as {
      readonly name: string;
      readonly labelNames: readonly string[];
      readonly type: string;
    };
    if (type !== "histogram") return [[name, labelNames] as const];
    return [
      [`${name}_bucket`, [...labelNames, "le"]],
      [`${name}_sum`, labelNames],
      [`${name}_count`, labelNames],
    ] as const;
  });
}

const isOf = (word: string) => (target: string) => (target.split(":")[0] ?? "").split("-").includes(word);
const none = () => 0;
const own = (registry: Registry) => ({ logger: silentLogger, registry, clock: systemClock });
