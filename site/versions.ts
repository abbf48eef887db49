import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A directory of the site that holds one version's documentation. */
const VERSION = /^\d+\.\d+\.\d+(-[\w.]+)?$/;

/** The versions whose documentation lies in the site `into`, the newest first. */
export function versionsIn(into: string): readonly string[] {
  return readdirSync(into)
    .filter((name) => VERSION.test(name) && existsSync(join(into, name, "search.json")))
    .sort(newestFirst);
}

function newestFirst(one: string, other: string): number {
  const order = new Intl.Collator("en", { numeric: true });
  const [core, preview = ""] = one.split(/-(.*)/);
  const [otherCore, otherPreview = ""] = other.split(/-(.*)/);
  // A preview such as 1.0.0-rc.1 is older than its release.
  if (core === otherCore && (preview === "") !== (otherPreview === "")) return preview === "" ? -1 : 1;
  return order.compare(other, one);
}

/**
 * Writes the parts of the site that belong to no version: `versions.json`, from which each page lists the others, and a first page that leads
 * to the newest. Other versions in the directory stay.
 */
export function writeVersions(into: string): void {
  mkdirSync(into, { recursive: true });
  const versions = versionsIn(into);
  const [newest] = versions;
  if (newest === undefined) throw new Error(`${into} has no version's documentation`);
  writeFileSync(join(into, "versions.json"), `${JSON.stringify(versions)}\n`);
  writeFileSync(
    join(into, "index.html"),
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=${newest}/index.html">
<title>Berth</title>
</head>
<body>
<p><a href="${newest}/index.html">The documentation of Berth ${newest}</a></p>
</body>
</html>
`,
  );
}
