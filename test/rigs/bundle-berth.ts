import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { type Plugin, rolldown } from "rolldown";
import { coarseMappings } from "./coarse-mappings.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
/** The commands of a cloud's processes. Their compiled code is kept, so that not each of them compiles it again. */
const COMPILED = [["cell", "add"], ["compute-agent"], ["conductor"], ["scheduler"], ["api"]] as const;
/** The file of TypeBox's validation in the directory of a bundle. */
const VALIDATION = "cli/validation.js";

/**
 * Bundles the `berth` of this working tree with its dependencies into `dir`, which must be empty, and returns the path of the launcher. A service that is
 * started from there reads some dozens of files instead of a thousand, which saves a third of the CPU time until it is ready. What is read besides code, such as
 * SQL, and what threads run, is that of the working tree. Stack traces name the sources. Cost: some five seconds of CPU.
 */
export async function bundleBerth(dir: string): Promise<string> {
  const bundle = await rolldown({
    input: join(ROOT, "cli/main.ts"),
    platform: "node",
    logLevel: "warn",
    plugins: [keepPlaces, takeBuiltinHttp, takeValidation(join(dir, VALIDATION))],
  });
  await bundle.write({
    dir: join(dir, "cli"),
    format: "esm",
    entryFileNames: "bundled.js",
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  await bundle.close();
  coarsenMaps(join(dir, "cli"));
  await bundleValidation(dir);
  writeFileSync(join(dir, "package.json"), '{"type":"module"}\n');
  writeFileSync(join(dir, "cli/main.js"), 'process.setSourceMapsEnabled(true);\nawait import("./bundled.js");\n');
  symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  mkdirSync(join(dir, "bin"));
  copyFileSync(join(ROOT, "bin/berth"), join(dir, "bin/berth"));
  const launcher = join(dir, "berth");
  const compiled = `NODE_COMPILE_CACHE='${join(dir, "compiled")}'`;
  writeFileSync(launcher, `#!/bin/sh\n${compiled} exec '${join(dir, "bin/berth")}' "$@"\n`, { mode: 0o755 });
  for (const words of COMPILED) await run(launcher, [...words, "--help"]);
  const env = { ...process.env, NODE_COMPILE_CACHE: join(dir, "compiled") };
  await run(process.execPath, [join(dir, VALIDATION)], { env });
  return launcher;
}

/** Makes the source maps of a directory small: each process whose connections break asks for stacks. */
function coarsenMaps(dir: string): void {
  for (const name of readdirSync(dir).filter((file) => file.endsWith(".map"))) {
    const map = JSON.parse(readFileSync(join(dir, name), "utf8")) as { readonly mappings: string };
    writeFileSync(join(dir, name), JSON.stringify({ ...map, mappings: coarseMappings(map.mappings), names: [] }));
  }
}

/** Bundles TypeBox's validation by itself: it is 200 files, and only the services that validate something load them, such as every agent at its start. */
async function bundleValidation(dir: string): Promise<void> {
  const bundle = await rolldown({ input: "typebox/schema", cwd: ROOT, platform: "node", logLevel: "warn" });
  await bundle.write({ file: join(dir, VALIDATION), format: "esm" });
  await bundle.close();
}

/** Where the code that loads TypeBox's validation takes it from. */
const takeValidation = (path: string): Plugin => ({
  name: "take-validation",
  transform: {
    filter: { code: `load("typebox/schema")` },
    handler: (code) => ({ code: code.replace(`load("typebox/schema")`, `load(${JSON.stringify(path)})`), map: null }),
  },
});

/** Lets each module know its own place in the working tree instead of the bundle's. */
const keepPlaces: Plugin = {
  name: "keep-places",
  transform: {
    filter: { code: "import.meta." },
    handler: (code, id) => {
      const placed = code
        .replaceAll("import.meta.dirname", JSON.stringify(dirname(id)))
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href));
      // No map, since no line has moved.
      return { code: placed, map: null };
    },
  },
};

const HTTP = "built-in:http";

/** An import statement of node:http evaluates all its exports, one of which loads Node's own undici, and so takes a tenth of a second. */
const takeBuiltinHttp: Plugin = {
  name: "take-builtin-http",
  resolveId: { filter: { id: /^(node:)?http$/ }, handler: () => HTTP },
  load: {
    filter: { id: /^built-in:http$/ },
    handler: () => 'module.exports = process.getBuiltinModule("node:http");',
  },
};
