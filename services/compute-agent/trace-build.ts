import { contextOfTraceparent } from "../../adapters/telemetry/propagation.ts";
import { failSpan, type Tracing } from "../../adapters/telemetry/tracing.ts";
import type { GuestName } from "./journal.ts";
import type { Span } from "./ports.ts";

/** Traces one attempt as part of the conductor's trace. */
export function traceBuild(tracing: Tracing, guest: GuestName, traceparent: string): Span {
  if (!tracing.enabled) return NO_SPAN;
  const span = tracing.start("agent build", {
    parent: contextOfTraceparent(traceparent),
    attributes: { "berth.server": guest.serverUuid, "berth.host": guest.host, "berth.attempt": guest.attemptId },
  });
  return {
    end(error) {
      if (error !== null) failSpan(span, error);
      span.end();
    },
  };
}

const NO_SPAN: Span = { end: () => {} };
