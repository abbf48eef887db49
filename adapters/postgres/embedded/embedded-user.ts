import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { EmbeddedError } from "./embedded-error.ts";

/** An unprivileged account to run Postgres under, since Postgres refuses to run as root. */
export interface PostgresUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The account for Postgres. Null (the present one) unless the process runs as root; then `postgres` if it exists, otherwise `nobody`. */
export function choosePostgresUser(): PostgresUser | null {
  if (process.getuid?.() !== 0) return null;
  const accounts = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedError(
    "no-user",
    "Postgres refuses to run as root and there is neither a user postgres nor nobody: run as another user",
  );
}

/** Whether the account can enter the directory. The system itself is asked, because it knows about ACLs and mounts. */
export function canEnter(dir: string, user: PostgresUser | null): boolean {
  if (user === null) return true;
  return (
    spawnSync("/bin/sh", ["-c", 'cd "$0"', dir], { uid: user.uid, gid: user.gid, cwd: "/", stdio: "ignore" }).status ===
    0
  );
}
