import { SpanKind } from "@opentelemetry/api";
import { contextOf, traceIdOf, traceparentOf } from "../../adapters/telemetry/propagation.ts";
import { failSpan, type Tracing } from "../../adapters/telemetry/tracing.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";
import type { TaskSpan } from "./ports.ts";

/** Continues the trace that the message's headers name. A task that was swept up has no headers and begins a new trace. */
export function traceTask(tracing: Tracing, task: Task, headers: Readonly<Record<string, string>>): TaskSpan {
  const span = tracing.start(`conductor ${task.work?.$case ?? "task"}`, {
    parent: contextOf(headers),
    kind: SpanKind.CONSUMER,
    attributes: { "berth.server": task.server?.uuid ?? "", "berth.task": task.id },
  });
  return {
    traceparent: tracing.enabled ? traceparentOf(span) : "",
    traceId: traceIdOf(span),
    end(error) {
      if (error !== null) failSpan(span, error);
      span.end();
    },
  };
}
