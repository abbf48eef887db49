import { otlpEndpointIn } from "../../adapters/telemetry/otlp-endpoint.ts";
import { runService } from "../../runtime/lifecycle.ts";
import { type AgentProcess, openAgent } from "./open-agent.ts";
import { agentDeclaration } from "./settings.ts";

/** Runs `berth compute-agent` and resolves with the exit code. */
export function runComputeAgent(argv: readonly string[]): Promise<number> {
  let agent: AgentProcess | null = null;
  // Without this listener SIGHUP would end the process.
  process.on("SIGHUP", () => agent?.lookAtHosts());
  return runService(process, {
    name: "compute-agent",
    argv,
    declaration: agentDeclaration,
    create: async (context) => {
      agent = await openAgent(context, {
        otlpEndpoint: otlpEndpointIn(process.env),
        crash: () => process.kill(process.pid, "SIGKILL"),
      });
      return agent;
    },
    readyNote: (service) => (service as AgentProcess).note,
  });
}
