import { LiveLine } from "../../runtime/live-line.ts";
import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { Drain } from "./drain.ts";
import { drainLine } from "./drain-progress.ts";
import { awayText, drainText, isAway } from "./drain-text.ts";
import type { ShownHost } from "./host-answer.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";

const declaration = {
  command: "berth host drain",
  about:
    "Keeps new servers off the host and moves its servers away. The exit code is 0 only if the host is empty then.",
  positionals: ["HOST"],
  settings: {
    ...operatorSettings,
    live: setting(boolean, { about: "migrate running servers live", default: "false" }),
  },
};

/** `berth host drain HOST [--live]`. */
export function runHostDrainCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (access, [host = ""]) => {
    const path = `/hosts/${encodeURIComponent(host)}`;
    const reason = "drained by berth host drain";
    const shown = await callOperatorsApi<ShownHost>(access, "PUT", path, { disabled: true, reason });
    if (isAway(shown) && shown.servers > 0) {
      process.stderr.write(awayText(shown));
      return 1;
    }
    const drain = new Drain(access, { host, live: access.live });
    const progress = new LiveLine(
      process.stderr,
      (seconds, withBar) => drainLine(drain.tally, seconds, withBar),
      () => performance.now(),
    );
    progress.start();
    const report = await drain.run().finally(() => progress.stop());
    process.stdout.write(drainText(host, report));
    return report.stayed.length === 0 && report.unlisted === null ? 0 : 1;
  });
}
