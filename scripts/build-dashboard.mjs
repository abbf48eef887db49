// Bundles the dashboard's page (dashboard/page) into dashboard/built, which the api serves. With --if-stale only when a source is newer than
// what was built; with --if-possible a machine without the bundler (npm ci --omit=dev) is not an error.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

const root = join(import.meta.dirname, "..");
const page = join(root, "dashboard/page");
const built = join(root, "dashboard/built");
// The modules of the last build, with those that the page shares with the api and the command.
const modules = join(built, "modules.json");
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
  const { output } = await bundler.build({
    write: false,
    input: join(page, "main.tsx"),
    platform: "browser",
    logLevel: "warn",
    transform: { target: "es2022" },
    output: { file: join(built, "app.js"), format: "esm", minify: true },
  });
  const [{ code, moduleIds }] = output;
  const own = moduleIds.filter((id) => id.startsWith(root) && !id.includes("node_modules"));
  writeFileSync(modules, JSON.stringify(own.map((id) => relative(root, id)).sort()));
  // Its time says when the whole page was built, so it is written last.
  writeFileSync(join(built, "app.js"), code);
}

function isStale() {
  const result = join(built, "app.js");
  if (!existsSync(result) || !existsSync(modules)) return true;
  const bundled = JSON.parse(readFileSync(modules, "utf8")).map((path) => join(root, path));
  const sources = [...readdirSync(page).map((name) => join(page, name)), ...bundled];
  return sources.some((path) => !existsSync(path) || statSync(path).mtimeMs > statSync(result).mtimeMs);
}
