import { type ComposeService, fromEnvironment } from "./compose-service.ts";

const PROFILE = { profiles: ["observability"], restart: "unless-stopped", stop_grace_period: "10s" };

/**
 * The services that monitor the cloud, only with the profile `observability`. Prometheus and the collector reach into every cell. Only
 * spans and answers to scrapes come up from there.
 */
export function observability(cells: readonly string[]): Record<string, ComposeService> {
  return {
    "otel-collector": {
      image: "otel/opentelemetry-collector:0.119.0",
      command: ["--config=/etc/otel-collector.yaml"],
      volumes: ["./observability/otel-collector.yaml:/etc/otel-collector.yaml:ro"],
      networks: ["above", ...cells],
      mem_limit: "192m",
      ...PROFILE,
    },
    jaeger: {
      image: "jaegertracing/all-in-one:1.65.0",
      environment: { MEMORY_MAX_TRACES: "20000" },
      networks: ["above"],
      ports: [`127.0.0.1:${fromEnvironment("BERTH_JAEGER_PORT", 16_686)}:16686`],
      mem_limit: "384m",
      ...PROFILE,
    },
    prometheus: {
      image: "prom/prometheus:v3.1.0",
      command: [
        "--config.file=/etc/prometheus/prometheus.yaml",
        "--storage.tsdb.retention.time=2d",
        "--enable-feature=exemplar-storage",
      ],
      volumes: [
        "./observability/prometheus.yaml:/etc/prometheus/prometheus.yaml:ro",
        "./observability/alerts.yaml:/etc/prometheus/alerts.yaml:ro",
        "prometheus:/prometheus",
      ],
      networks: ["above", ...cells],
      mem_limit: "512m",
      ...PROFILE,
    },
    grafana: {
      image: "grafana/grafana:11.4.0",
      environment: { GF_AUTH_ANONYMOUS_ENABLED: "true", GF_AUTH_ANONYMOUS_ORG_ROLE: "Viewer" },
      volumes: [
        "./observability/grafana:/etc/grafana/provisioning:ro",
        "./observability/dashboards:/var/lib/grafana/dashboards:ro",
      ],
      networks: ["above"],
      ports: [`127.0.0.1:${fromEnvironment("BERTH_GRAFANA_PORT", 3_000)}:3000`],
      mem_limit: "256m",
      ...PROFILE,
    },
  };
}
