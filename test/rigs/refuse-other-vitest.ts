import { realpathSync } from "node:fs";
import { join, sep } from "node:path";

const PROGRAM = join(sep, "node_modules", "vitest", sep);

/**
 * Throws if the running program is the Vitest of another tree than `root`, as with that tree's `node_modules/.bin` in PATH. Its runner would then wait for the tests of one
 * copy of Vitest, while the test files import another copy, in which no file has begun ("Vitest failed to find the current suite"). Another program, such as an editor's,
 * starts the Vitest that it finds for the tree, and is not refused.
 */
export function refuseOtherVitest(root: string, program: string | undefined): void {
  if (program === undefined) return;
  const running = realpathSync(program);
  const end = running.lastIndexOf(PROGRAM);
  if (end < 0) return;
  const own = realpathSync(join(root, "node_modules", "vitest"));
  const other = running.slice(0, end + PROGRAM.length - 1);
  if (other !== own)
    throw new Error(
      `this is the Vitest in ${other}, and the tests of ${root} import the one in ${own}: start that one, with npm test or ${join(root, "node_modules", ".bin", "vitest")}`,
    );
}
