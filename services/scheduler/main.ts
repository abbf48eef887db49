import { otlpEndpointIn } from "../../adapters/telemetry/otlp-endpoint.ts";
import { runService } from "../../runtime/lifecycle.ts";
import { openScheduler, type SchedulerProcess } from "./open-scheduler.ts";
import { schedulerDeclaration } from "./settings.ts";

/** Runs `berth scheduler`, and resolves with the exit code. */
export function runScheduler(argv: readonly string[]): Promise<number> {
  return runService(process, {
    name: "scheduler",
    argv,
    declaration: schedulerDeclaration,
    create: (context) => openScheduler(context, otlpEndpointIn(process.env)),
    readyNote: (service) => (service as SchedulerProcess).note,
  });
}
