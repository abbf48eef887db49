import { mkdirSync, writeFileSync } from "node:fs";
import { CHARTS, chartTemplates } from "../deploy/helm-files.ts";

for (const chart of CHARTS) {
  const directory = new URL(`../deploy/helm/${chart}/`, import.meta.url);
  mkdirSync(new URL("templates/", directory), { recursive: true });
  for (const [path, text] of Object.entries(chartTemplates(chart))) writeFileSync(new URL(path, directory), text);
}
