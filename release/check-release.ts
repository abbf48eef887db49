import { execFile, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { isAllowedLicence } from "./allowed-licences.ts";
import { makePackage } from "./make-package.ts";
import { makeSbom } from "./make-sbom.ts";
import type { CloneManifest, PackageLock } from "./published-manifest.ts";
import { type ReleasePapers, shortfallsOf } from "./shortfalls.ts";

const USAGE = `usage: npm run release:check -- TAG

Checks that the commit can be released as TAG (v0.1.0), makes its package and bill of materials beside package.json, and tests the
package. Exit code 1 with what is missing.`;

const root = join(import.meta.dirname, "..");
const textOf = (path: string): string => readFileSync(join(root, path), "utf8");

async function main([tag, ...more]: readonly string[]): Promise<number> {
  if (tag === undefined || more.length > 0 || tag.startsWith("-")) {
    process.stderr.write(`${USAGE}\n`);
    return 2;
  }
  const shortfalls = shortfallsOf(await readPapers(tag));
  for (const shortfall of shortfalls) process.stderr.write(`release ${tag}: ${shortfall}\n`);
  if (shortfalls.length > 0) return 1;
  const { name, version } = JSON.parse(textOf("package.json")) as CloneManifest;
  const { file, staged, bytes } = await makePackage(root);
  const sbom = join(root, `${name}-${version}.sbom.json`);
  writeFileSync(sbom, await makeSbom(staged, name));
  process.stdout.write(`${file}: ${bytes} bytes\n${sbom}\n`);
  // The tests install a package of the same commit, and boot a server with it.
  const words = ["run", "--project", "long", "release"];
  const { status } = spawnSync(join(root, "node_modules/.bin/vitest"), words, { cwd: root, stdio: "inherit" });
  return status === 0 ? 0 : 1;
}

async function readPapers(tag: string): Promise<ReleasePapers> {
  const { version, license } = JSON.parse(textOf("package.json")) as CloneManifest;
  const { packages } = JSON.parse(textOf("package-lock.json")) as PackageLock;
  const { stdout } = await promisify(execFile)("git", ["status", "--porcelain"], { cwd: root });
  return {
    ...{ tag, version, license, changelog: textOf("CHANGELOG.md"), licenceText: textOf("LICENSE") },
    shipped: Object.entries(packages).flatMap(([path, { dev = false, devOptional = false, license: licence }]) =>
      path === "" || dev || devOptional
        ? []
        : [{ path, isAllowed: isAllowedLicence(licence), licence: licence ?? "none" }],
    ),
    changedFiles: stdout.split("\n").filter((line) => line !== ""),
  };
}

process.exit(await main(process.argv.slice(2)));
