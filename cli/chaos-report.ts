import { readFileSync, writeFileSync } from "node:fs";
import { checkHistory, failuresOf } from "../chaos/checkers/checker.ts";
import { standardCheckers } from "../chaos/checkers/standard-checkers.ts";
import { figuresOf } from "../chaos/report/figures.ts";
import { figuresText } from "../chaos/report/print-figures.ts";
import { HistoryError, readHistory } from "../chaos/report/read-history.ts";
import { renderReport } from "../chaos/report/render-report.ts";
import { boolean, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const declaration = {
  command: "berth chaos-report",
  about:
    "Judges the history of a chaos run again, prints its figures and writes its report. The exit code is 1 if it finds a failure.",
  positionals: ["HISTORY"],
  settings: {
    output: optional(text(), { about: "file for the report; by default the history's name with .html" }),
    json: setting(boolean, { about: "print the figures as one JSON object", default: "false" }),
  },
};

/** `berth chaos-report HISTORY`: shows what a history says, even if its run was broken off. */
export function runChaosReportCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [path = ""]) => {
    const history = read(path);
    const figures = figuresOf(history);
    const failures = failuresOf(checkHistory(history, standardCheckers));
    const output = settings.output ?? `${path.replace(/\.jsonl?$/, "")}.html`;
    writeFileSync(output, renderReport(history, figures));
    const words = [figuresText(figures), ...failures.map((failure) => `failed: ${failure}`), `report: ${output}`];
    process.stdout.write(`${settings.json ? JSON.stringify({ ...figures, found: failures }) : words.join("\n")}\n`);
    return failures.length === 0 && figures.passed !== false ? 0 : 1;
  });
}

function read(path: string): ReturnType<typeof readHistory> {
  try {
    return readHistory(readFileSync(path, "utf8"));
  } catch (error) {
    if (error instanceof HistoryError || (error as NodeJS.ErrnoException).code !== undefined)
      throw new SettingsError(`${path}: ${(error as Error).message}`);
    throw error;
  }
}
