import { execFile, execFileSync, spawn } from "node:child_process";
import { symlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { makeScratchDir } from "../../chaos/local/scratch-dir.ts";

const ROOT = join(import.meta.dirname, "../..");
const INSTALL = ["ci", "--omit=dev", "--no-audit", "--no-fund"];

/** Advice when `findOldRef` finds nothing. */
export const HOW_TO_NAME_AN_OLD_VERSION =
  "no older version to mix with: there is no release tag before this commit; set BERTH_OLD_REF to a commit or tag (a shallow clone has few)";

/** The other version: BERTH_OLD_REF, or the newest release tag (`v*`) before this commit. Null when there is neither. */
export function findOldRef(): string | null {
  const given = process.env.BERTH_OLD_REF ?? "";
  if (given !== "") return given;
  try {
    return git("describe", "--tags", "--match", "v*", "--abbrev=0", "HEAD^").trim();
  } catch {
    return null;
  }
}

/** Another version of Berth, complete and runnable. */
export interface OldVersion {
  /** Its abbreviated commit id. */
  readonly commit: string;
  /** The path of its `berth`. */
  readonly berth: string;
  remove(): Promise<void>;
}

/**
 * Unpacks the version into a directory of its own, which is removed when this process ends. It uses our dependencies if its
 * package-lock.json equals ours; otherwise npm installs its own (from the registry or the cache). Throws when git does not know the
 * version, or npm fails.
 */
export async function openOldVersion(ref: string): Promise<OldVersion> {
  const commit = git("rev-parse", "--short", `${ref}^{commit}`).trim();
  const dir = makeScratchDir();
  try {
    await unpack(commit, dir.path);
    const [ours, theirs] = await Promise.all(
      [ROOT, dir.path].map((root) => readFile(join(root, "package-lock.json"), "utf8")),
    );
    if (ours === theirs) symlinkSync(join(ROOT, "node_modules"), join(dir.path, "node_modules"));
    else await promisify(execFile)("npm", INSTALL, { cwd: dir.path });
    return { commit, berth: join(dir.path, "bin/berth"), remove: () => dir.remove() };
  } catch (error) {
    await dir.remove();
    throw error;
  }
}

async function unpack(commit: string, into: string): Promise<void> {
  const archive = spawn("git", ["archive", "--format=tar", commit], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const tar = spawn("tar", ["-x", "-C", into], { stdio: ["pipe", "inherit", "inherit"] });
  const ended = Promise.all([archive, tar].map((child) => new Promise((resolve) => child.once("close", resolve))));
  await pipeline(archive.stdout, tar.stdin);
  const codes = await ended;
  if (codes.some((code) => code !== 0)) throw new Error(`git archive ${commit} could not be unpacked: ${codes}`);
}

function git(...argv: readonly string[]): string {
  return execFileSync("git", argv, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
