import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { urlsOf } from "./embedded-cluster.ts";

/**
 * Connection URLs of the embedded Postgres that another process serves from the data directory. Null when no server was ever started there.
 * Whether one is running shows only when connecting. The caller must be allowed to read the directory.
 */
export function urlsOfEmbedded(dataDir: string): ReturnType<typeof urlsOf> | null {
  const portFile = join(dataDir, "port");
  const passwordFile = join(dataDir, "cluster", "berth-password");
  if (!existsSync(portFile) || !existsSync(passwordFile)) return null;
  const port = readFileSync(portFile, "utf8").trim();
  const password = readFileSync(passwordFile, "utf8");
  return urlsOf({ dir: realpathSync(join(dataDir, "cluster")), password }, port);
}
