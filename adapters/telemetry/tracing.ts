import {
  type Attributes,
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  type Link,
  type Span,
  type SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";

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
