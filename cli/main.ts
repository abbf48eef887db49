import { hidePasswords } from "../runtime/logger.ts";
import { commandList, unknownCommandText } from "./command-list.ts";
import { findCommand } from "./commands.ts";
import { versionText } from "./version-text.ts";

/** The `berth` command: finds the subcommand by its first words, runs it, ends with its exit code. */
async function main(argv: readonly string[]): Promise<number> {
  const found = findCommand(argv);
  switch (found.kind) {
    case "command":
      return found.command.run(found.argv);
    case "help":
      process.stdout.write(`${commandList()}\n`);
      return 0;
    case "version":
      process.stdout.write(`${versionText()}\n`);
      return 0;
    case "unknown":
      process.stderr.write(`berth: ${unknownCommandText(found)}\n`);
      return 2;
    case "group":
      process.stdout.write(`${commandList(found.group)}\n`);
      return 0;
    default:
      return found satisfies never;
  }
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  // An operating failure has a code and a message for the user. Everything else is a bug, for which the stack matters.
  const known = error instanceof Error && "code" in error;
  const text = known ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`berth: ${hidePasswords(text)}\n`);
  process.exit(1);
}
