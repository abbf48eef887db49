import { Registry } from "prom-client";

const OPEN_METRICS = "application/openmetrics-text";

/** An observation that a metric's line gives as an example of those that it counts. */
export interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>;
  readonly value: number;
  /** Seconds since the epoch. */
  readonly timestamp: number;
}

interface Sample {
  readonly metricName?: string;
  readonly labels?: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly exemplar?: Exemplar | null;
}
interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly Sample[];
}

/**
 * The metrics of a registry in a format that the scraper accepts: OpenMetrics, which has exemplars, if its header `Accept` names it, and otherwise
 * Prometheus's own. prom-client writes OpenMetrics for a whole registry or not at all, and then renames its counters, so it is written here.
 */
export async function metricsText(
  registry: Registry,
  accept: string | undefined,
): Promise<{ readonly type: string; readonly body: string }> {
  if (accept?.includes(OPEN_METRICS) !== true) return { type: registry.contentType, body: await registry.metrics() };
  const families = (await registry.getMetricsAsJSON()) as unknown as readonly Family[];
  const lines = families.flatMap(familyLines);
  return { type: Registry.OPENMETRICS_CONTENT_TYPE, body: `${[...lines, "# EOF"].join("\n")}\n` };
}

/** The series of a counter have the suffix `_total`, but the name of its family does not. */
function familyLines({ name, help, type, values }: Family): readonly string[] {
  const family = type === "counter" ? name.replace(/_total$/, "") : name;
  const samples = values.map((sample) => {
    const series = type === "counter" ? `${family}_total` : (sample.metricName ?? name);
    return `${series}${labelText(sample.labels ?? {})} ${numberText(sample.value)}${exemplarText(sample.exemplar)}`;
  });
  return [`# HELP ${family} ${escaped(help)}`, `# TYPE ${family} ${type}`, ...samples];
}

function exemplarText(exemplar: Exemplar | null | undefined): string {
  if (exemplar === null || exemplar === undefined) return "";
  const { labelSet, value, timestamp } = exemplar;
  return ` # ${labelText(labelSet)} ${numberText(value)} ${timestamp}`;
}

function labelText(labels: Readonly<Record<string, string | number>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
