import { expect, test } from "vitest";
import { otlpEndpointIn } from "./otlp-endpoint.ts";

test.each([
  [{}, null],
  [{ BERTH_OTLP_ENDPOINT: "", OTEL_EXPORTER_OTLP_ENDPOINT: "" }, null],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://b:4318" }, "http://b:4318/"],
  [{ BERTH_OTLP_ENDPOINT: "https://a/x", OTEL_EXPORTER_OTLP_ENDPOINT: "http://b" }, "https://a/x"],
])("in the environment %j the endpoint is %j", (environment, endpoint) => {
  expect(otlpEndpointIn(environment)).toBe(endpoint);
});

test.each(["nowhere", "localhost:4318", "grpc://a"])("%j is refused by an error that names the setting", (value) => {
  expect(() => otlpEndpointIn({ BERTH_OTLP_ENDPOINT: value })).toThrow(/^BERTH_OTLP_ENDPOINT: /);
});
