import { expect, onTestFinished, test, vi } from "vitest";
import { commands } from "../../cli/commands.ts";
import { misspelledVariables } from "../../runtime/misspelled-variables.ts";
import { directory } from "../../runtime/setting-kinds.ts";
import { type Declaration, envOf, optional, type Setting } from "../../runtime/settings.ts";
import { apiDeclaration } from "../../services/api/settings.ts";

type Declared = Declaration<Readonly<Record<string, Setting<unknown>>>>;

/** Declares the variables that the help of a command names. */
async function declarationOf(command: string, help: () => Promise<unknown>): Promise<Declared> {
  const output = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => output.mockRestore());
  await help();
  const written = output.mock.calls.map(([part]) => String(part)).join("");
  output.mockRestore();
  const variables = [...written.matchAll(/^ +(BERTH_.*)$/gm)].flatMap(([, names = ""]) => names.split(", "));
  const settings = Object.fromEntries(
    variables.map((variable) => [
      variable
        .slice("BERTH_".length)
        .toLowerCase()
        .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
      optional(directory, { about: "" }),
    ]),
  );
  return { command, about: "", settings };
}

test.each([
  ["BERTH_LISTN", "BERTH_LISTEN"],
  ["BERTH_DATABSE_URL", "BERTH_DATABASE_URL"],
  ["BERTH_DATABASE_URL_FLIE", "BERTH_DATABASE_URL_FILE"],
  ["BERTH_REDIS_URI", "BERTH_REDIS_URL"],
])("%s has no effect, and the api says so and names %s", (variable, meant) => {
  expect(misspelledVariables(apiDeclaration, { [variable]: "x", BERTH_LISTEN: "y" })).toEqual([
    `${variable} has no effect: did you mean ${meant}?`,
  ]);
});

test("a variable of another command, which may be in the same environment, is not taken for a misspelled one", async () => {
  const modes = { "api --only placement": ["--only", "placement"], "replay --place-only": ["--place-only"] };
  const declarations: Declared[] = [];
  for (const { name, run } of commands) declarations.push(await declarationOf(name, () => run(["--help"])));
  for (const [name, argv] of Object.entries(modes)) {
    const command = commands.find((one) => one.name === name.split(" ")[0]);
    declarations.push(await declarationOf(name, async () => command?.run([...argv, "--help"])));
  }
  const variables = declarations.flatMap(({ settings }) => Object.keys(settings).map(envOf));
  expect(variables).toEqual(
    expect.arrayContaining(["BERTH_SEEDS", "BERTH_CELL", "BERTH_CELLS", "BERTH_NATS_URL_FILE"]),
  );
  const all = Object.fromEntries([...variables, "BERTH_IMAGE"].map((variable) => [variable, "x"]));
  for (const declaration of declarations)
    expect(misspelledVariables(declaration, all), declaration.command).toEqual([]);
});

test("variables of other programs are not looked at", () => {
  expect(misspelledVariables(apiDeclaration, { LISTN: "x", BERTHA_LISTEN: "x", BERTH_TEST_SEED: "1" })).toEqual([]);
});
