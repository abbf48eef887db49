import { otlpEndpointIn } from "../../adapters/telemetry/otlp-endpoint.ts";
import { runService } from "../../runtime/lifecycle.ts";
import { type ConductorProcess, openConductor } from "./open-conductor.ts";
import { conductorDeclaration } from "./settings.ts";

/** Runs `berth conductor` and resolves with the exit code. */
export function runConductor(argv: readonly string[]): Promise<number> {
  return runService(process, {
    name: "conductor",
    argv,
    declaration: conductorDeclaration,
    create: (context) => openConductor(context, otlpEndpointIn(process.env)),
    readyNote: (service) => (service as ConductorProcess).note,
  });
}
