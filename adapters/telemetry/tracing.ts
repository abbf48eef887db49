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

/** Spans that may wait for export; more are dropped. At 10,000 spans/s that is the exporter's pause of 2 s. */
const queuedSpansMax = 20_000;
const exportPauseMs = 1_000;
const exportMsMax = 10_000;
/** A collector that does not answer may hold the end of the process so long. */
const closeMsMax = 3_000;

export interface TracingOptions {
  /** `service.name`: berth-api, berth-scheduler, … */
  readonly service: string;
  /** `service.instance.id`, when several processes of the service run. */
  readonly instance?: string;
  /** `service.version` */
  readonly version?: string;
  /**
   * Where spans go: the base URL of an OTLP/HTTP collector, or an exporter that takes each span at once (for tests). Null: nothing is
   * traced.
   */
  readonly exportTo: string | SpanExporter | null;
}

export interface SpanStart {
  /** Whose child it is; the span that is active here unless given. */
  readonly parent?: Context | Span;
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  readonly links?: readonly Link[];
}

/**
 * The tracing of one service: off (spans are all the same one, which does nothing) or on. There is no instrumentation
 * behind anybody's back: a span is there where the code says so.
 */
export interface Tracing {
  readonly enabled: boolean;
  /** A span that the caller ends. It is not made the active one, so that many of a batch can be open side by side. */
  start(name: string, options?: SpanStart): Span;
  /** Sends what waits for export. */
  flush(): Promise<void>;
  /** Flushes, for at most 3 s, and ends. Never rejects. Repeatable. */
  close(): Promise<void>;
}

const offSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/** Tracing that is off. Cost: a call that returns a constant. */
export const noTracing: Tracing = {
  enabled: false,
  start: () => offSpan,
  flush: async () => {},
  close: async () => {},
};

/** Starts the tracing of one service. Several of one process do not mix: each has its own resource and exporter. */
export function startTracing(options: TracingOptions): Tracing {
  if (options.exportTo === null) return noTracing;
  // The first one of the process stays; it is the same for all.
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
 * Runs `run` with a new span as the active one, and ends it with the outcome. What `run` throws is noted and thrown on.
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
 * Runs one step for a whole batch and shows it in the trace of each of its items: a span an item, each under its own
 * parent, all from the start of `run` to its end. What `run` throws is noted on all of them and thrown on.
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

/** Marks a span as failed; it still has to be ended. */
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
