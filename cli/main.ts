import { commands, findCommand } from "./commands.ts";

/** The `berth` command: finds the subcommand by its first words, runs it, ends with its exit code. */
async function main(argv: readonly string[]): Promise<number> {
  const found = findCommand(argv);
  switch (found.kind) {
    case "command":
      return found.command.run(found.argv);
    case "help":
      process.stdout.write(`${commandList()}\n`);
      return 0;
    case "unknown":
      process.stderr.write(`berth: unknown command ${JSON.stringify(found.word)}\n\n${commandList()}\n`);
      return 2;
    default:
      return found satisfies never;
  }
}

function commandList(): string {
  const width = Math.max(...commands.map((command) => command.name.length)) + 2;
  const lines = commands.map((command) => `  ${command.name.padEnd(width)}${command.summary}`);
  return ["usage: berth COMMAND [flags]", "", ...lines, "", "berth COMMAND --help tells a command's flags."].join("\n");
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  // An operating failure has a message for the user; everything else is a bug, whose place matters.
  const known = error instanceof Error && "code" in error;
  process.stderr.write(`berth: ${known ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}
