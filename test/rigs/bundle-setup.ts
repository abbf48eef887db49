import { rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { bundleBerth } from "./bundle-berth.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of the bundled `berth` of this test run. */
    berthBundle: string;
  }
}

/**
 * Bundles the `berth` that local clouds start in this run. Each run makes its own, and makes it again when files have changed meanwhile, so that it is never
 * older than the sources.
 */
export default async function setup(project: TestProject): Promise<() => void> {
  // Not in memory: containers allow no programs to be started from there.
  const directory = makeOwnedDir("bundle");
  const bundle = async (name: string) => project.provide("berthBundle", await bundleBerth(join(directory, name)));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  let runs = 1;
  project.onTestsRerun(() => {
    runs += 1;
    return bundle(`${runs}`);
  });
  await bundle(`${runs}`).catch((error) => {
    remove();
    throw error;
  });
  return remove;
}
