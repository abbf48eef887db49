// The first step of `npm test` and `npm run demo` on a fresh clone. This is plain JavaScript without dependencies, because it runs before
// anything is installed, under the Node that came with npm.
// Arguments: further programs that must be installed, with `:package` where Debian's package has another name (nats-server, redis-server,
// gabbi-run:python3-gabbi), or absolute paths of other files, with their packages.
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname ?? process.cwd(), "..");
// Debian's packages have the names of the programs, and put some of them into directories that only root's PATH contains.
const SYSTEM_DIRS = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

if (!modulesAreCurrent()) {
  console.log("setup: installing the dependencies (npm ci)");
  // Warnings would concern the Node that npm came with, but everything runs under the pinned one.
  runOrExit("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
}
if (!existsSync(join(root, "node_modules/node/bin/node"))) {
  // npm was told to skip install scripts, but one of them fetches the pinned Node.
  runOrExit("npm", ["rebuild", "--ignore-scripts=false", "--foreground-scripts", "node"]);
}
runOrExit(join(root, "node_modules/node/bin/node"), [join(root, "scripts/build-dashboard.mjs"), "--if-stale"]);
const needed = process.argv.slice(2).map((argument) => argument.split(":"));
installMissing(needed.filter(([program]) => !isOnPath(program)).map(([program, name]) => name ?? program));

/** Whether node_modules matches package-lock.json. Contents are compared, since times in a clone mean nothing. */
function modulesAreCurrent() {
  const installed = readPackages("node_modules/.package-lock.json");
  const wanted = readPackages("package-lock.json");
  if (installed === null || wanted === null) return false;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (path === "") return true;
    return installed[path] === undefined ? optional === true : installed[path].version === version;
  });
}

function readPackages(file) {
  const path = join(root, file);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).packages : null;
}

function installMissing(programs) {
  if (programs.length === 0) return;
  const packages = programs.join(" ");
  if (process.getuid?.() !== 0 || !isOnPath("apt-get")) {
    console.error(
      `setup: missing: ${packages}; install them (Debian, Ubuntu: sudo apt-get install ${packages}) and run this again`,
    );
    process.exit(1);
  }
  console.log(`setup: installing ${packages} (apt-get)`);
  // Runlevel 1 keeps the packages from starting their services, because the tests start servers of their own.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const install = ["install", "-y", "-q", "--no-install-recommends", ...programs];
  if (spawnSync("apt-get", install, { stdio: "ignore", env }).status !== 0) {
    runOrExit("apt-get", ["update", "-q"], env);
    runOrExit("apt-get", install, env);
  }
}

function isOnPath(program) {
  const dirs = program.startsWith("/") ? [""] : [...(process.env.PATH ?? "").split(delimiter), ...SYSTEM_DIRS];
  return dirs.some((dir) => {
    try {
      accessSync(join(dir, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function runOrExit(program, args, env = process.env) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: "inherit", env });
  if (status === 0) return;
  console.error(`setup: ${program} ${args.join(" ")} failed${error ? `: ${error.message}` : ""}`);
  process.exit(1);
}
