import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The name and the version of this package, from its own description. */
export function versionText(): string {
  const text = readFileSync(join(import.meta.dirname, "../package.json"), "utf8");
  const { version } = JSON.parse(text) as { readonly version?: string };
  return `berth ${version ?? "of an unknown version"}`;
}
