import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { readSettings } from "../../runtime/settings.ts";
import { openAgent } from "./open-agent.ts";
import { agentDeclaration } from "./settings.ts";

test("an agent whose data directory cannot be made names the setting", async () => {
  // Below a file there can be no directory.
  const dataDir = join(import.meta.filename, "data");
  const argv = ["--agent-id=agent-1", "--conductors=127.0.0.1:1", "--hosts=1", `--data-dir=${dataDir}`];
  const read = readSettings(agentDeclaration, { argv, env: {} });
  if (read.kind !== "settings") throw new Error("the settings were not read");
  const context = { logger: pino({ level: "silent" }), fail: () => {} };
  await expect(
    openAgent({ settings: read.settings, ...context }, { otlpEndpoint: null, crash: () => {} }),
  ).rejects.toThrow(/^BERTH_DATA_DIR \(--data-dir\) .* cannot be used/);
});
