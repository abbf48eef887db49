import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Binaries } from "./embedded-binaries.ts";
import type { PostgresUser } from "./embedded-user.ts";

const run = promisify(execFile);

/**
 * The path of the pattern for clusters that these programs make with these arguments of initdb for this account. Null when no patterns are
 * kept, which is so unless BERTH_CLUSTER_PATTERNS names an existing directory for them. It is for tests, which make hundreds of clusters:
 * initdb takes more than a second of CPU time, and a copy a tenth of that. Clusters from one pattern have the same system identifier, so
 * Postgres itself would not refuse the log of one for another.
 */
export function patternFor(binaries: Binaries, args: readonly string[], user: PostgresUser | null): string | null {
  const kept = process.env.BERTH_CLUSTER_PATTERNS ?? "";
  if (!existsSync(kept)) return null;
  const made = JSON.stringify([binaries.initdb, binaries.version, args, user?.uid ?? null]);
  return join(kept, createHash("sha256").update(made).digest("hex").slice(0, 16));
}

/**
 * Keeps a copy of a cluster that no server has been started on yet. The pattern gets its name when it is whole. Of two processes that keep
 * one at once, the first wins. A process that may not write there keeps none.
 */
export async function keepPattern(pattern: string, cluster: string): Promise<void> {
  const part = `${pattern}.part-${randomBytes(6).toString("hex")}`;
  try {
    await copyClusterFiles(cluster, part);
    renameSync(part, pattern);
  } catch {
    // Each later cluster is then made by initdb, or from the other process's pattern.
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

/** Copies the files of a cluster, with their owner. Hard links would not do, because Postgres writes into its files. */
export async function copyClusterFiles(from: string, to: string): Promise<void> {
  await run("cp", ["-a", `${from}/.`, to]);
}
