import { changesBetween } from "./nearest-words.ts";
import { type Declaration, envOf, type Setting } from "./settings.ts";

const PREFIX = "BERTH_";
/** More changes, or two in a short name, would lead from settings of one service to those of another. */
const CHANGES_MAX = 2;
const SHORT_MAX = PREFIX.length + 6;

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
    .filter((variable) => variable.startsWith(PREFIX) && !known.has(variable))
    .flatMap((variable) => {
      const changesMax = variable.length > SHORT_MAX ? CHANGES_MAX : 1;
      const nearest = [...known].find((one) => changesBetween(variable, one) <= changesMax);
      return nearest === undefined ? [] : [`${variable} has no effect: did you mean ${nearest}?`];
    });
}
