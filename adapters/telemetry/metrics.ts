import { collectDefaultMetrics, Registry } from "prom-client";

/**
 * How often the delay of the event loop is looked at, in milliseconds, which is part of each delay that is reported. Each look wakes the process: the
 * library's own 10 ms would take 0.2 % of a CPU in each process that has nothing to do.
 */
const LAG_LOOK_MS = 50;

/**
 * The metrics of one service. Its own are named `berth_<service>_<what>_<unit>`. Those of the process (CPU, memory, event loop, garbage
 * collection) have the names that dashboards for Node know. Every series is labelled with the service.
 */
export function createRegistry(options: {
  /** api, scheduler, conductor, compute-agent */
  readonly service: string;
  /** False for all but one of several services that share a process, so that the process is reported once. */
  readonly withProcess?: boolean;
}): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service: options.service });
  if (options.withProcess ?? true)
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_LOOK_MS });
  return registry;
}

/** The names of metrics that break the rule: neither `berth_*` nor one of the process's own. For tests. */
export function misnamedMetrics(registry: Registry): readonly string[] {
  return registry
    .getMetricsAsArray()
    .map((metric) => metric.name)
    .filter((name) => !/^(berth|process|nodejs)_[a-z0-9_]+$/.test(name));
}
