import { otlpEndpointIn } from "../../adapters/telemetry/otlp-endpoint.ts";
import { addressText } from "../../runtime/address-text.ts";
import { runService } from "../../runtime/lifecycle.ts";
import { openApi } from "./open-api.ts";
import { runOnlyPlacement } from "./placement/only-placement.ts";
import type { ApiService } from "./service.ts";
import { apiDeclaration } from "./settings.ts";

/** Runs `berth api` until SIGTERM or SIGINT, and resolves with the exit code. With `--only placement`, only that API is served. */
export function runApi(argv: readonly string[]): Promise<number> {
  if (argv.some((word) => word === "--only" || word.startsWith("--only="))) return runOnlyPlacement(process, argv);
  return runService(process, {
    name: "api",
    argv,
    declaration: apiDeclaration,
    create: (context) => openApi(context, otlpEndpointIn(process.env)),
    readyNote: (service) => `http://${addressText((service as ApiService).address)}`,
  });
}
