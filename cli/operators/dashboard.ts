import { integer } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { apiAddress } from "./api-address.ts";
import { DashboardProxy } from "./dashboard-proxy.ts";
import { operatorSettings } from "./operators-client.ts";
import { requireDashboard } from "./require-dashboard.ts";

const declaration = {
  command: "berth dashboard",
  about:
    "Serves the dashboard of an api on this machine, with a token that the user does not have to enter, until Ctrl-C.",
  settings: {
    ...operatorSettings,
    port: setting(integer({ min: 0, max: 65_535 }), {
      about: "port on 127.0.0.1; 0 selects any free one",
      default: "0",
    }),
  },
};

/** `berth dashboard`: prints the address to open. Exit code 1 when the api does not answer or serves no dashboard. */
export function runDashboardCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async ({ api, dataDir, token, port }) => {
    const apiUrl = apiAddress({ api, dataDir });
    await requireDashboard(apiUrl, "page");
    const proxy = new DashboardProxy({ apiUrl, token, port });
    const ended = new Promise<void>((resolve) => {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
    });
    process.stdout.write(`ready ${await proxy.start()}\n`);
    await ended;
    await proxy.close();
    return 0;
  });
}
