import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { NoRespondersError, PermissionViolationError, TimeoutError } from "@nats-io/transport-node";
import { BusError, type BusErrorCode } from "../../runtime/bus.ts";

const missing: ReadonlySet<number> = new Set([JetStreamApiCodes.ConsumerNotFound, JetStreamApiCodes.StreamNotFound]);

/** Converts an error of the driver to a BusError. The driver hides the kind of an error in its chain of causes. */
export function toBusError(about: string, error: unknown): BusError {
  let depth = 0;
  for (let cause = error; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if (cause instanceof BusError) return cause;
    const code = codeOf(cause);
    if (code !== undefined) return new BusError(code, about, cause.message, { cause: error });
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new BusError("refused", about, detail, { cause: error });
}

function codeOf(error: Error): BusErrorCode | undefined {
  if (error instanceof PermissionViolationError) return "not-permitted";
  if (error instanceof NoRespondersError) return "no-stream";
  if (error instanceof TimeoutError) return "timeout";
  if (error instanceof JetStreamApiError) return missing.has(error.code) ? "no-stream" : "refused";
  // The request was sent before the connection broke, so it may have been carried out.
  if (error.message === "connection closed" || error.name === "ClosedConnectionError") return "timeout";
  return undefined;
}
