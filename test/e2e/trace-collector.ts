import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty when the span has no parent. */
  readonly parentSpanId: string;
  /** Milliseconds since the epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  /** The values of all its attributes, as text. */
  readonly values: readonly string[];
  readonly events: readonly { readonly name: string; readonly atMs: number }[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}
interface ExportBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly attributes?: readonly Attribute[];
        readonly events?: readonly { readonly name: string; readonly timeUnixNano: string }[];
      }[];
    }[];
  }[];
}

/** An OTLP/HTTP collector (the JSON encoding) that keeps every span. */
export interface TraceCollector {
  /** For `BERTH_OTLP_ENDPOINT`. */
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  close(): void;
}

export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const server = createServer((request, response) => {
    json(request).then(
      (body) => {
        spans.push(...spansOf(body as ExportBody));
        response.writeHead(200, { "content-type": "application/json" }).end("{}");
      },
      () => response.writeHead(400).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function spansOf(body: ExportBody): CollectedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const named = resource.attributes.find(({ key }) => key === "service.name");
    const service = String(named?.value.stringValue);
    return scopeSpans.flatMap((scope) =>
      scope.spans.map((span) => ({
        service,
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? "",
        startMs: Number(span.startTimeUnixNano) / 1e6,
        endMs: Number(span.endTimeUnixNano) / 1e6,
        values: (span.attributes ?? []).map(({ value }) => String(Object.values(value)[0])),
        events: (span.events ?? []).map(({ name, timeUnixNano }) => ({ name, atMs: Number(timeUnixNano) / 1e6 })),
      })),
    );
  });
}
