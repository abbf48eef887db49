import { addressText } from "../../runtime/address-text.ts";
import { runService } from "../../runtime/lifecycle.ts";
import { openConsoleProxy } from "./open-console-proxy.ts";
import type { ConsoleProxy } from "./service.ts";
import { consoleProxyDeclaration } from "./settings.ts";

/** Runs `berth console-proxy` and resolves with the exit code. */
export function runConsoleProxy(argv: readonly string[]): Promise<number> {
  return runService(process, {
    name: "console-proxy",
    argv,
    declaration: consoleProxyDeclaration,
    create: openConsoleProxy,
    readyNote: (service) => `ws://${addressText((service as ConsoleProxy).address)}/`,
  });
}
