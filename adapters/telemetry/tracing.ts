import {
  type Attributes,
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  SimpleSpanProcessor,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-base";

type SpanExporter = ConstructorParameters<typeof SimpleSpanProcessor>[0];

/** Maximum number of spans that wait for export. More are dropped. At 10,000 spans/s this covers the exporter's pause of 2 s. */
const queuedSpansMax = 20_000;
const exportPauseMs = 1_000;
const exportMsMax = 10_000;
/** How long a collector that does not answer may delay the end of the process. */
const closeMsMax = 3_000;

export interface TracingOptions {
  /** `service.name`: berth-api, berth-scheduler, … */
  readonly service: string;
  /** `service.instance.id`, needed when several processes of the service run. */
  readonly instance?: string;
  /** `service.version` */
  readonly version?: string;
  /**
   * Where spans are sent: the base URL of an OTLP/HTTP collector, or an exporter that gets each span at once (for tests). Null disables
   * tracing.
   */
  readonly exportTo: string | SpanExporter | null;
}

export interface SpanStart {
  /** The parent span. The active span by default. */
  readonly parent?: Context | Span;
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  readonly links?: readonly Link[];
}

/**
 * The tracing of one service, either off (all spans are one span that does nothing) or on. Nothing is instrumented automatically: a span
 * exists only where the code creates one.
 */
export interface Tracing {
  readonly enabled: boolean;
  /** Starts a span that the caller ends. It does not become the active one, so that many spans of a batch can be open side by side. */
  start(name: string, options?: SpanStart): Span;
  /** Sends the spans that wait for export. */
  flush(): Promise<void>;
  /** Flushes for at most 3 s, and ends. Never rejects. Repeatable. */
  close(): Promise<void>;
}

const offSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/** Disabled tracing. Cost: a call that returns a constant. */
export const noTracing: Tracing = {
  enabled: false,
  start: () => offSpan,
  flush: async () => {},
  close: async () => {},
};

/** Starts the tracing of one service. Several services of one process do not mix, because each has its own resource and exporter. */
export function startTracing(options: TracingOptions): Tracing {
  if (options.exportTo === null) return noTracing;
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

function processorFor(exportTo: string | SpanExporter): SpanProcessor {
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

/**
 * Runs `run` with a new span as the active one, and ends the span with the outcome. An error of `run` is recorded in the span and rethrown.
 * Cost: with tracing off, one call of `run`.
 */
export async function inSpan<Result>(
  tracing: Tracing,
  name: string,
  options: SpanStart,
  run: (span: Span) => Result | Promise<Result>,
): Promise<Result> {
  if (!tracing.enabled) return run(offSpan);
  const span = tracing.start(name, options);
  try {
    return await context.with(trace.setSpan(context.active(), span), () => run(span));
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/**
 * Runs one step for a whole batch and shows it in the trace of each item. Each item gets a span under its own parent, which lasts as long
 * as `run`. An error of `run` is recorded in all of them and rethrown.
 */
export async function inSpanEach<Result>(
  tracing: Tracing,
  name: string,
  items: readonly SpanStart[],
  run: (spans: readonly Span[]) => Promise<Result>,
): Promise<Result> {
  const spans = items.map((item) => tracing.start(name, item));
  if (!tracing.enabled) return run(spans);
  try {
    return await run(spans);
  } catch (error) {
    for (const span of spans) failSpan(span, error);
    throw error;
  } finally {
    for (const span of spans) span.end();
  }
}

/** Marks a span as failed. The caller must still end it. */
export function failSpan(span: Span, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  if (error instanceof Error) span.recordException(error);
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
