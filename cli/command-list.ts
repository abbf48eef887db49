import { commands, type FoundCommand } from "./commands.ts";

/** Lists the commands with their descriptions: all of them, or those whose first word is `group`. */
export function commandList(group: string | null = null): string {
  const listed = commands.filter(({ name }) => group === null || name.startsWith(`${group} `));
  const width = Math.max(...listed.map((command) => command.name.length)) + 2;
  const lines = listed.map((command) => `  ${command.name.padEnd(width)}${command.summary}`);
  return [
    `usage: berth ${group === null ? "" : `${group} `}COMMAND [flags]`,
    "",
    ...lines,
    "",
    `berth ${group === null ? "" : `${group} `}COMMAND --help lists a command's flags.`,
    ...(group === null ? ["berth --version prints the version."] : []),
  ].join("\n");
}

/** Names an unknown command, those that may have been meant, and where all are listed. */
export function unknownCommandText({ word, group, nearest }: Extract<FoundCommand, { kind: "unknown" }>): string {
  const meant = nearest.length === 0 ? "" : `Did you mean ${nearest.map((name) => `berth ${name}`).join(", or ")}?\n`;
  const list = group === null ? "berth --help" : `berth ${group} --help`;
  return `unknown command ${JSON.stringify(word)}\n${meant}${list} lists the commands.`;
}
