import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { InMemorySpanExporter } from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { carrierOf, contextOf, contextOfTraceparent, traceparentOf } from "./propagation.ts";
import { startTracing } from "./start-tracing.ts";
import { inSpan, inSpanEach, noTracing, type Tracing } from "./tracing.ts";

describe("enabled tracing", () => {
  let exporter: InMemorySpanExporter;
  let tracing: Tracing;
  beforeEach(async () => {
    exporter = new InMemorySpanExporter();
    tracing = await startTracing({ service: "berth-test", instance: "i1", exportTo: exporter });
  });
  afterEach(() => tracing.close());
  const finished = () => exporter.getFinishedSpans();
  const spanNamed = (name: string) => finished().find((span) => span.name === name) ?? expect.fail(`no span ${name}`);

  test("makes nested spans children, also after awaiting", async () => {
    await inSpan(tracing, "outer", { attributes: { server: "s1" } }, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      await inSpan(tracing, "inner", {}, () => 1);
    });
    const [inner, outer] = [spanNamed("inner"), spanNamed("outer")];
    expect(inner.parentSpanContext?.spanId).toBe(outer.spanContext().spanId);
    expect(outer.parentSpanContext).toBeUndefined();
    expect(outer.attributes).toEqual({ server: "s1" });
    expect(outer.resource.attributes).toMatchObject({ "service.name": "berth-test", "service.instance.id": "i1" });
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  test("continues the trace in another process by the headers of a message", async () => {
    const other = new InMemorySpanExporter();
    const otherTracing = await startTracing({ service: "other", exportTo: other });
    let headers: Readonly<Record<string, string>> = {};
    await inSpan(tracing, "send", { kind: SpanKind.PRODUCER }, (span) => {
      headers = carrierOf(span);
    });
    const received = otherTracing.start("receive", { parent: contextOf(headers), kind: SpanKind.CONSUMER });
    const further = otherTracing.start("build", { parent: contextOfTraceparent(traceparentOf(received)) });
    further.end();
    received.end();
    const [build, receive] = other.getFinishedSpans();
    const sent = spanNamed("send").spanContext();
    expect(headers.traceparent).toBe(`00-${sent.traceId}-${sent.spanId}-01`);
    expect(receive?.parentSpanContext).toMatchObject({ traceId: sent.traceId, spanId: sent.spanId, isRemote: true });
    expect(build?.spanContext().traceId).toBe(sent.traceId);
    expect(build?.parentSpanContext?.spanId).toBe(receive?.spanContext().spanId);
    await otherTracing.close();
  });

  test.each([
    {},
    { traceparent: "" },
    { traceparent: "nonsense" },
    { traceparent: `00-${"0".repeat(32)}-${"0".repeat(16)}-01` },
  ])("starts a new trace for the headers %j", (headers) => {
    tracing.start("alone", { parent: contextOf(headers) }).end();
    expect(spanNamed("alone").parentSpanContext).toBeUndefined();
  });

  test("shows a batch in the trace of each of its items", async () => {
    const parents = [tracing.start("request 1"), tracing.start("request 2")];
    const items = parents.map((parent, index) => ({ parent, attributes: { index } }));
    expect(await inSpanEach(tracing, "claim", items, async (spans) => spans.length)).toBe(2);
    for (const parent of parents) parent.end();
    const claims = finished().filter((span) => span.name === "claim");
    expect(claims.map((span) => span.parentSpanContext?.spanId)).toEqual(
      parents.map((parent) => parent.spanContext().spanId),
    );
    expect(claims.map((span) => span.spanContext().traceId)).toEqual(
      parents.map((parent) => parent.spanContext().traceId),
    );
  });

  test("records a thrown error, and throws it on", async () => {
    const failing = async () => {
      throw new Error("no luck");
    };
    await expect(inSpan(tracing, "one", {}, failing)).rejects.toThrow("no luck");
    await expect(inSpanEach(tracing, "each", [{}, {}], failing)).rejects.toThrow("no luck");
    expect(finished().map((span) => span.status)).toEqual(
      Array(3).fill({ code: SpanStatusCode.ERROR, message: "no luck" }),
    );
    expect(spanNamed("one").events.map((event) => event.name)).toEqual(["exception"]);
  });
});

describe("disabled tracing", () => {
  test("runs everything, and sends no header", async () => {
    const tracing = await startTracing({ service: "berth-test", exportTo: null });
    expect(tracing).toBe(noTracing);
    expect(await inSpan(tracing, "a", {}, (span) => carrierOf(span))).toEqual({});
    expect(await inSpanEach(tracing, "b", [{}, {}], async (spans) => spans.map(traceparentOf))).toEqual(["", ""]);
    await expect(inSpan(tracing, "c", {}, () => Promise.reject(new Error("no luck")))).rejects.toThrow("no luck");
    await tracing.close();
  });
});

describe("a collector", () => {
  test("gets the spans over OTLP/HTTP under its base URL", async () => {
    const received: { readonly path: string; readonly body: string }[] = [];
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        received.push({ path: request.url ?? "", body });
        response.end("{}");
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const tracing = await startTracing({ service: "berth-test", exportTo: `${base}/otlp` });
    await inSpan(tracing, "exported span", {}, () => {});
    await tracing.flush();
    expect(received.map(({ path }) => path)).toEqual(["/otlp/v1/traces"]);
    expect(received[0]?.body).toContain("exported span");
    await tracing.close();
    server.closeAllConnections();
    server.close();
  });

  test("does not keep anybody from working or from ending when it is absent", async () => {
    const tracing = await startTracing({ service: "berth-test", exportTo: "http://127.0.0.1:1" });
    expect(await inSpan(tracing, "lost", {}, () => "done")).toBe("done");
    await tracing.close();
    await tracing.close();
  });
});
