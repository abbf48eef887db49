import { expect, test } from "vitest";
import { unknownCommandText } from "./command-list.ts";
import { type Command, commands, findCommand } from "./commands.ts";

const [add, dev] = ["cell add", "dev"].map((name): Command => ({ name, summary: "", run: async () => 0 })) as [
  Command,
  Command,
];

test("finds a command by all of its words and passes on the remaining arguments", () => {
  expect(findCommand(["cell", "add", "c1", "--disabled"], [dev, add])).toEqual({
    kind: "command",
    command: add,
    argv: ["c1", "--disabled"],
  });
  expect(findCommand(["dev"], [dev, add])).toEqual({ kind: "command", command: dev, argv: [] });
});

test("names the unknown word", () => {
  expect(findCommand(["servers"], [dev, add])).toEqual({ kind: "unknown", word: "servers", group: null, nearest: [] });
  const unknown = { kind: "unknown", word: "cell remove", group: "cell", nearest: ["cell add"] };
  expect(findCommand(["cell", "remove"], [dev, add])).toEqual(unknown);
});

test.each([
  [["expalin", "--json"], ["explain"]],
  [["cells"], ["cell"]],
  [["cel", "lits"], ["cell list"]],
  [["hots", "list"], ["host list"]],
  [["hosts", "5"], ["host"]],
  [["cell", "lsit"], ["cell list"]],
  [["conductr"], ["conductor"]],
  [["fly", "me"], []],
])("suggests for %j the commands %j", (argv, expected) => {
  const found = findCommand(argv);
  if (found.kind !== "unknown") throw new Error("the command was found");
  expect(found.nearest.slice(0, 1)).toEqual(expected);
  const text = unknownCommandText(found);
  expect(text).toMatch(/^unknown command ".*"\n/);
  expect(text.split("\n").at(-1)).toMatch(/^berth (cell )?--help lists the commands\.$/);
  if (expected.length > 0) expect(text).toContain(`\nDid you mean berth ${expected[0]}`);
});

test("lists a group's commands when its word is given alone or with a request for help", () => {
  for (const argv of [["cell"], ["cell", "--help"]])
    expect(findCommand(argv, [dev, add])).toEqual({ kind: "group", group: "cell" });
});

test("shows help when there are no arguments, or on request", () => {
  for (const argv of [[], ["help"], ["--help"]]) expect(findCommand(argv, [dev])).toEqual({ kind: "help" });
});

test("finds the command or the group whose help is asked for, and the version", () => {
  expect(findCommand(["help", "dev"], [dev, add])).toEqual({ kind: "command", command: dev, argv: ["--help"] });
  expect(findCommand(["help", "cell", "add"], [dev, add])).toEqual({ kind: "command", command: add, argv: ["--help"] });
  expect(findCommand(["help", "cell"], [dev, add])).toEqual({ kind: "group", group: "cell" });
  expect(findCommand(["help", "servers"], [dev, add])).toMatchObject({ kind: "unknown", word: "servers" });
  expect(findCommand(["--version"], [dev, add])).toEqual({ kind: "version" });
});

test("names every command once, and no name is the beginning of another", () => {
  for (const { name } of commands) {
    expect(commands.filter((other) => `${other.name} `.startsWith(`${name} `)).map((other) => other.name)).toEqual([
      name,
    ]);
  }
});
