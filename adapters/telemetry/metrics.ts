import { collectDefaultMetrics, Registry } from "prom-client";

/**
 * The metrics of one service. Its own are named `berth_<service>_<what>_<unit>`; those of the process (CPU, memory, event loop, garbage
 * collection) have the names that dashboards for Node know. Every series says which service it is of.
 */
export function createRegistry(options: {
  /** api, scheduler, conductor, compute-agent */
  readonly service: string;
  /** False where several services share a process and one of them tells of it. */
  readonly withProcess?: boolean;
}): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service: options.service });
  if (options.withProcess ?? true) collectDefaultMetrics({ register: registry });
  return registry;
}

/** Names of metrics that break the rule: anything but `berth_*` beside the process's own. For tests. */
export function misnamedMetrics(registry: Registry): readonly string[] {
  return registry
    .getMetricsAsArray()
    .map((metric) => metric.name)
    .filter((name) => !/^(berth|process|nodejs)_[a-z0-9_]+$/.test(name));
}
