import { changesBetween } from "./nearest-words.ts";
import { type Declaration, envOf, type Setting } from "./settings.ts";

const PREFIX = "BERTH_";
/** More changes, or two in a short name, would lead from settings of one service to those of another. */
const CHANGES_MAX = 2;
const SHORT_MAX = PREFIX.length + 6;
/** Variables of some commands, and of the Compose file, that resemble one of another command. They may be in the environment of both. */
const ALIKE: ReadonlySet<string> = new Set(
  "API APIS BATCH CELL CELLS DURATION HOST HOSTS IMAGE IMAGES MUTATION NAME NAMES SEED SEEDS SPEED WATCH"
    .split(" ")
    .map((name) => PREFIX + name),
);

/**
 * Returns a sentence for each variable of the environment that no setting of the command has, but that differs from one by a letter or two.
 * Such a variable has no effect. It is not refused, because services share files of variables, also with services of other versions.
 */
export function misspelledVariables(
  declaration: Declaration<Readonly<Record<string, Setting<unknown>>>>,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const known = new Set(
    Object.entries(declaration.settings).flatMap(([name, { kind }]) =>
      kind.secret === true ? [envOf(name), `${envOf(name)}_FILE`] : [envOf(name)],
    ),
  );
  return Object.keys(env)
    .filter((variable) => variable.startsWith(PREFIX) && !known.has(variable) && !ALIKE.has(variable))
    .flatMap((variable) => {
      const changesMax = variable.length > SHORT_MAX ? CHANGES_MAX : 1;
      const nearest = [...known].find((one) => changesBetween(variable, one) <= changesMax);
      return nearest === undefined ? [] : [`${variable} has no effect: did you mean ${nearest}?`];
    });
}
