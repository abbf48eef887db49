import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { noTracing } from "../../../adapters/telemetry/tracing.ts";
import { createLogger } from "../../../runtime/logger.ts";
import { ApiEvents } from "../events.ts";
import { createHttp } from "./create-http.ts";
import { unavailable } from "./fault.ts";

const SETTINGS = {
  ...{ listen: { host: "127.0.0.1", port: 0 }, publicUrl: null, bodyBytesMax: 1_000, computeBodyBytesMax: 1_000 },
  ...{
    jsonDepthMax: 10,
    requestTimeoutMs: 1_000,
    keepAliveMs: 1_000,
    metrics: false,
    headRoutes: true,
    computePrefixes: ["/v2.1"],
  },
};

it("logs the status that the client of a failed request got", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    ...{ name: "api", level: "error" },
    stream: { write: (line: string) => lines.push(JSON.parse(line)) },
  });
  const events = new ApiEvents(logger, new Registry());
  const http = createHttp({ events, tracing: noTracing }, SETTINGS);
  http.get("/late", () => {
    throw unavailable("The database does not answer.");
  });
  http.get("/broken", () => {
    throw new TypeError("a mistake");
  });
  for (const [url, status] of [["/late", 503] as const, ["/broken", 500] as const])
    expect((await http.inject(url)).statusCode).toBe(status);
  expect(lines).toMatchObject([
    { url: "/late", status: 503, msg: "a request could not be served, and its client got a 503" },
    { url: "/broken", status: 500, msg: "a request failed with an unexpected error, and its client got a 500" },
  ]);
  await http.close();
});
