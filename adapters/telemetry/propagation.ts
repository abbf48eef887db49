import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";

/** Headers as NATS messages, HTTP requests and gRPC messages carry them; names in lower case. */
export type Carrier = Readonly<Record<string, string | string[] | undefined>>;

const w3c = new W3CTraceContextPropagator();
const emptyCarrier: Readonly<Record<string, string>> = Object.freeze({});

/** The headers (`traceparent`, and `tracestate` when there is one) that make a span the parent of what is done on the other side. */
export function carrierOf(span: Span): Readonly<Record<string, string>> {
  if (!isSpanContextValid(span.spanContext())) return emptyCarrier;
  const carrier: Record<string, string> = {};
  w3c.inject(trace.setSpan(ROOT_CONTEXT, span), carrier, defaultTextMapSetter);
  return carrier;
}

/** For messages with a field of their own for it; empty when nothing is traced. */
export function traceparentOf(span: Span): string {
  return carrierOf(span).traceparent ?? "";
}

/** The context that headers speak of; without any, or with malformed ones, one that belongs to no trace. */
export function contextOf(carrier: Carrier): Context {
  if (carrier.traceparent === undefined || carrier.traceparent === "") return ROOT_CONTEXT;
  return w3c.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter);
}

/** The same for a message's own field; empty: no trace. */
export function contextOfTraceparent(traceparent: string): Context {
  return contextOf({ traceparent });
}
