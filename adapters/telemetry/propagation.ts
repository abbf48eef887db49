import { createRequire } from "node:module";
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import type { W3CTraceContextPropagator } from "@opentelemetry/core";

/** Headers as NATS messages, HTTP requests and gRPC messages carry them, with names in lower case. */
export type Carrier = Readonly<Record<string, string | string[] | undefined>>;

const load = createRequire(import.meta.url);
let propagator: W3CTraceContextPropagator | null = null;
const emptyCarrier: Readonly<Record<string, string>> = Object.freeze({});

/** The headers (`traceparent`, and `tracestate` when there is one) that make a span the parent of the work on the other side. */
export function carrierOf(span: Span): Readonly<Record<string, string>> {
  if (!isSpanContextValid(span.spanContext())) return emptyCarrier;
  const carrier: Record<string, string> = {};
  w3c().inject(trace.setSpan(ROOT_CONTEXT, span), carrier, defaultTextMapSetter);
  return carrier;
}

/** Loaded with the first trace, since most processes never see one. */
function w3c(): W3CTraceContextPropagator {
  propagator ??= new (load("@opentelemetry/core") as typeof import("@opentelemetry/core")).W3CTraceContextPropagator();
  return propagator;
}

/** The span's `traceparent`, for messages that have a field for it. Empty when nothing is traced. */
export function traceparentOf(span: Span): string {
  return carrierOf(span).traceparent ?? "";
}

/** The trace context in the headers. When they are missing or malformed, the context belongs to no trace. */
export function contextOf(carrier: Carrier): Context {
  if (carrier.traceparent === undefined || carrier.traceparent === "") return ROOT_CONTEXT;
  return w3c().extract(ROOT_CONTEXT, carrier, defaultTextMapGetter);
}

/** The trace context in a message's own field. An empty field means no trace. */
export function contextOfTraceparent(traceparent: string): Context {
  return contextOf({ traceparent });
}

/** The id of the span's trace, as exemplars name it. Empty when the span is not sent to a collector. */
export function traceIdOf(span: Span | null): string {
  const own = span?.spanContext();
  return own !== undefined && isSpanContextValid(own) && (own.traceFlags & TraceFlags.SAMPLED) !== 0 ? own.traceId : "";
}
