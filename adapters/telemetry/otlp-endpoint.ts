/**
 * The collector that the environment names by `BERTH_OTLP_ENDPOINT`, or else by OpenTelemetry's own `OTEL_EXPORTER_OTLP_ENDPOINT`. Null
 * when neither is set. Throws an error that names the setting when its value is not an http or https URL.
 */
export function otlpEndpointIn(environment: Readonly<Record<string, string | undefined>>): string | null {
  for (const name of ["BERTH_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]) {
    const value = environment[name];
    if (value === undefined || value === "") continue;
    const url = URL.canParse(value) ? new URL(value) : null;
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new Error(`${name}: ${JSON.stringify(value)} is not an http or https URL`);
    return url.href;
  }
  return null;
}
