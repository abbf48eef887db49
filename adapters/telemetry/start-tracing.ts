import { noTracing, type Tracing, type TracingOptions } from "./tracing.ts";

/**
 * Starts the tracing of one service. Several services of one process do not mix, because each has its own resource and exporter. What makes
 * spans and sends them is loaded only if a collector is set.
 */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  if (options.exportTo === null) return noTracing;
  const { startSdkTracing } = await import("./sdk-tracing.ts");
  return startSdkTracing({ ...options, exportTo: options.exportTo });
}
