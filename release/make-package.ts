import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { type CloneManifest, type PackageLock, publishedLock, publishedManifest } from "./published-manifest.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
/** The files of the package as they are packed, until the next one is made. */
const STAGED = join(root, ".berth/package");
/** Files beside the compiled ones: `release/tsconfig.json` compiles what the command and the exports reach. */
const COPIED = [
  "bin/berth",
  "LICENSE",
  "README.md",
  "CHANGELOG.md",
  "adapters/postgres/schema/api/migrations",
  "adapters/postgres/schema/api/functions",
  "adapters/postgres/schema/cell/migrations",
  "adapters/postgres/schema/cell/functions",
  "chaos/plans",
  "dashboard/built",
];
/** Files of threads, which no import names. */
const THREAD_FILE = /new URL\("(\.{1,2}\/[^"]+)\.ts", import\.meta\.url\)/g;

export interface MadePackage {
  /** The tarball, `berth-<version>.tgz`. */
  readonly file: string;
  /** The directory of its files, until the next one is made. */
  readonly staged: string;
  readonly bytes: number;
}

/**
 * Makes the npm package and packs it into `into`. Node strips no types below node_modules, so the package has JavaScript, compiled from
 * the clone by TypeScript itself, at the same paths. Needs the clone's own dependencies and the built dashboard. `checksTypes: false` is for
 * callers of a clone whose types are checked anyway: the package has the same code, and takes a fraction of the CPU time.
 */
export async function makePackage(into: string, { checksTypes = true } = {}): Promise<MadePackage> {
  const staged = STAGED;
  rmSync(staged, { recursive: true, force: true });
  mkdirSync(staged, { recursive: true });
  const flags = checksTypes ? [] : ["--noCheck"];
  await run(join(root, "node_modules/.bin/tsc"), ["-p", join(root, "release"), "--outDir", staged, ...flags]);
  for (const path of listCompiled(staged)) nameThreadFiles(staged, path);
  for (const path of COPIED) cpSync(join(root, path), join(staged, path), { recursive: true });
  chmodSync(join(staged, "bin/berth"), 0o755);
  const manifest = publishedManifest(readJson<CloneManifest>("package.json"));
  const lock = publishedLock(readJson<PackageLock>("package-lock.json"), manifest);
  writeJson(join(staged, "package.json"), manifest);
  writeJson(join(staged, "npm-shrinkwrap.json"), lock);
  const { stdout } = await run("npm", ["pack", staged, "--pack-destination", resolve(into), "--json"], { cwd: into });
  const [packed] = JSON.parse(stdout) as { filename: string }[];
  const file = join(resolve(into), packed?.filename ?? "");
  return { file, staged, bytes: statSync(file).size };
}

function listCompiled(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".js"));
}

function nameThreadFiles(staged: string, path: string): void {
  const text = readFileSync(join(staged, path), "utf8");
  const named = text.replaceAll(THREAD_FILE, (_, file: string) => {
    if (!existsSync(join(staged, path, "..", `${file}.js`)))
      throw new Error(`${path} starts a thread from ${file}.ts, which release/tsconfig.json must name`);
    return `new URL("${file}.js", import.meta.url)`;
  });
  if (named !== text) writeFileSync(join(staged, path), named);
}

function readJson<Content>(path: string): Content {
  return JSON.parse(readFileSync(join(root, path), "utf8")) as Content;
}

function writeJson(path: string, content: object): void {
  writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`);
}

if (import.meta.main) {
  const { file, bytes } = await makePackage(process.argv[2] ?? root);
  process.stdout.write(`${file}: ${(bytes / 1e6).toFixed(2)} MB\n`);
}
