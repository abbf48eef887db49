// Bundles the dashboard's page (dashboard/page) into dashboard/built, which the api serves. With --if-stale only when a source is newer than
// what was built; with --if-possible a machine without the bundler (npm ci --omit=dev) is no error.
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const page = join(root, "dashboard/page");
const built = join(root, "dashboard/built");
// The page shares these with the api and the command.
const SHARED = [
  "services/api/dashboard/read-live-events.ts",
  "services/api/dashboard/live-picture.ts",
  "cli/operators/life-events.ts",
];
const options = process.argv.slice(2);

if (!options.includes("--if-stale") || isStale()) await build();

async function build() {
  const bundler = await import("rolldown").catch((error) => {
    if (options.includes("--if-possible")) return null;
    throw error;
  });
  if (bundler === null) return;
  mkdirSync(built, { recursive: true });
  for (const [from, to] of [
    ["style.css", "app.css"],
    ["index.html", "index.html"],
    ["icon.svg", "icon.svg"],
  ])
    copyFileSync(join(page, from), join(built, to));
  // Its time says when the whole page was built, so it is written last.
  await bundler.build({
    input: join(page, "main.tsx"),
    platform: "browser",
    logLevel: "warn",
    transform: { target: "es2022" },
    output: { file: join(built, "app.js"), format: "esm", minify: true },
  });
}

function isStale() {
  const result = join(built, "app.js");
  if (!existsSync(result)) return true;
  const sources = [...readdirSync(page).map((name) => join(page, name)), ...SHARED.map((path) => join(root, path))];
  return sources.some((path) => statSync(path).mtimeMs > statSync(result).mtimeMs);
}
