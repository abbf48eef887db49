import { LiveLine } from "../../runtime/live-line.ts";
import { boolean } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { Drain, type DrainReport } from "./drain.ts";
import { drainLine } from "./drain-progress.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";

const declaration = {
  command: "berth host drain",
  about: "Keeps new servers off the host and moves its servers away. The exit code is 1 if any stayed.",
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
    await callOperatorsApi(access, "PUT", path, { disabled: true, reason: "drained by berth host drain" });
    const drain = new Drain(access, { host, live: access.live });
    const progress = new LiveLine(
      process.stderr,
      (seconds, withBar) => drainLine(drain.tally, seconds, withBar),
      () => performance.now(),
    );
    progress.start();
    const report = await drain.run().finally(() => progress.stop());
    process.stdout.write(describe(host, report));
    return report.stayed.length === 0 ? 0 : 1;
  });
}

function describe(host: string, { moved, stayed, seconds }: DrainReport): string {
  const rate = seconds > 0 ? ` (${(moved / seconds).toFixed(1)}/s)` : "";
  const lines = [`${host}: moved ${moved} in ${seconds.toFixed(1)} s${rate}, ${stayed.length} stayed`];
  for (const { id, name, why } of stayed) lines.push(`  ${id} ${name}: ${why}`);
  return `${lines.join("\n")}\n`;
}
