import { type Context, context, type Span, SpanKind, type Tracer, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  SimpleSpanProcessor,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import type { Tracing, TracingOptions } from "./tracing.ts";

/** Maximum number of spans that wait for export. More are dropped. At 10,000 spans/s this covers the exporter's pause of 2 s. */
const queuedSpansMax = 20_000;
const exportPauseMs = 1_000;
const exportMsMax = 10_000;
/** How long a collector that does not answer may delay the end of the process. */
const closeMsMax = 3_000;

type Exporting = TracingOptions & { readonly exportTo: NonNullable<TracingOptions["exportTo"]> };

/** Tracing that is on, see `start-tracing.ts`. */
export function startSdkTracing(options: Exporting): Tracing {
  // The first context manager of the process stays. It is the same for all services.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const resource = resourceFromAttributes({
    "service.name": options.service,
    ...(options.instance === undefined ? {} : { "service.instance.id": options.instance }),
    ...(options.version === undefined ? {} : { "service.version": options.version }),
  });
  const provider = new BasicTracerProvider({ resource, spanProcessors: [processorFor(options.exportTo)] });
  return tracingOver(provider, provider.getTracer("berth"));
}

function processorFor(exportTo: Exporting["exportTo"]): SpanProcessor {
  if (typeof exportTo !== "string") return new SimpleSpanProcessor(exportTo);
  const exporter = new OTLPTraceExporter({
    url: new URL("v1/traces", exportTo.endsWith("/") ? exportTo : `${exportTo}/`).href,
    timeoutMillis: exportMsMax,
  });
  return new BatchSpanProcessor(exporter, {
    maxQueueSize: queuedSpansMax,
    maxExportBatchSize: 2_000,
    scheduledDelayMillis: exportPauseMs,
    exportTimeoutMillis: exportMsMax,
  });
}

function tracingOver(provider: BasicTracerProvider, tracer: Tracer): Tracing {
  let closing: Promise<void> | undefined;
  return {
    enabled: true,
    start(name, { parent, kind = SpanKind.INTERNAL, attributes = {}, links = [] } = {}) {
      const under =
        parent === undefined ? context.active() : isSpan(parent) ? trace.setSpan(context.active(), parent) : parent;
      return tracer.startSpan(name, { kind, attributes, links: [...links] }, under);
    },
    flush: () => provider.forceFlush(),
    close() {
      closing ??= within(closeMsMax, provider.shutdown());
      return closing;
    },
  };
}

function isSpan(parent: Context | Span): parent is Span {
  return "spanContext" in parent;
}

function within(limitMs: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs);
    work
      .catch(() => {})
      .finally(() => {
        clearTimeout(timer);
        resolve();
      });
  });
}
