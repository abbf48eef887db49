import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { type Command, commands, findCommand } from "../cli/commands.ts";
import { readSources } from "./sources.ts";

const LINE = /^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:npx |bin\/)?berth (.+)$/;

/** The words after `berth` of every command line in the code of the documentation. */
function commandLines(): readonly { readonly where: string; readonly words: readonly string[] }[] {
  return readSources(join(import.meta.dirname, ".."), []).flatMap(({ path, markdown }) => {
    const code = [...markdown.matchAll(/^```[a-z]*\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text);
    const lines = code.join("\n").replaceAll("\\\n", " ").split("\n");
    return lines.flatMap((line) => {
      const words = LINE.exec(line)?.[1]
        ?.split(/ [#|>&]|;/)[0]
        ?.trim()
        .split(/\s+/);
      return words === undefined ? [] : [{ where: `${path}: berth ${words.join(" ")}`, words }];
    });
  });
}

afterEach(() => {
  vi.restoreAllMocks();
});

/** The flags that a command's help or its line in the list of commands names. */
async function flagsOf(command: Command): Promise<ReadonlySet<string>> {
  let printed = command.summary;
  const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  await command.run(["--help"]);
  spy.mockRestore();
  // A flag that may be negated is printed as --[no-]flag.
  return new Set(printed.replaceAll("--[no-]", "--").match(/--[a-z][a-z-]*/g));
}

// It loads the whole of every command.
test("every command in the documentation exists, with all its flags", { timeout: 120_000 }, async () => {
  const lines = commandLines();
  expect(lines.length).toBeGreaterThan(50);
  const wrong: string[] = [];
  // One after the other, because they print to the same place.
  const flags = new Map<Command, ReadonlySet<string>>();
  for (const command of commands) flags.set(command, await flagsOf(command));
  for (const { where, words } of lines) {
    const found = findCommand(words);
    if (found.kind === "help") continue;
    if (found.kind !== "command") wrong.push(`${where}: no such command`);
    else {
      const unknown = found.argv
        .filter((word) => word.startsWith("--"))
        .map((word) => word.split("=")[0] ?? "")
        .filter((flag) => flag !== "--help" && !flags.get(found.command)?.has(flag));
      if (unknown.length > 0) wrong.push(`${where}: has no ${unknown.join(", ")}`);
    }
  }
  expect(wrong).toEqual([]);
});
