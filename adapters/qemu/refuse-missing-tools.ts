import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { SettingsError } from "../../runtime/settings-error.ts";

/** The programs beside QEMU itself, with the packages of Debian that have them. */
const TOOLS: ReadonlyMap<string, string> = new Map([
  ["qemu-img", "qemu-utils"],
  ["genisoimage", "genisoimage"],
  ["taskset", "util-linux"],
]);

/** Throws a SettingsError that says what to install if a program is missing that guests need, so that it is not found out by the first guest. */
export function refuseMissingTools(searchPath: string = process.env.PATH ?? ""): void {
  const missing = [...TOOLS].filter(([program]) => !isOnPath(program, searchPath));
  if (missing.length === 0) return;
  const programs = missing.map(([program]) => program).join(" and ");
  const packages = missing.map(([, name]) => name).join(" ");
  throw new SettingsError(`--driver qemu needs ${programs}: install it (Debian, Ubuntu: apt install ${packages})`);
}

function isOnPath(program: string, searchPath: string): boolean {
  return searchPath.split(delimiter).some((dir) => {
    try {
      accessSync(join(dir, program), constants.X_OK);
      return true;
    } catch {
      return false; // it is not in this directory
    }
  });
}
