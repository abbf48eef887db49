import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";

/**
 * The seed of property tests for the files that are committed in a directory: whoever tests the same commit draws the same cases, and every commit draws
 * others. A directory that git does not know has a random seed.
 */
export function treeSeed(dir: string): number {
  const tree = treeOf(dir);
  return tree === null ? randomInt(2 ** 28) : Number.parseInt(tree.slice(0, 7), 16);
}

function treeOf(dir: string): string | null {
  try {
    return execFileSync("git", ["rev-parse", "HEAD^{tree}"], {
      cwd: dir,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
  } catch {
    return null;
  }
}
