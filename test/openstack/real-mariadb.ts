import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createConnection } from "mysql2/promise";
import { startChildServer } from "../../runtime/child-server.ts";
import { isAsked } from "./is-asked.ts";

// Only Debian's package mariadb-server is used.
const SERVE = "/usr/sbin/mariadbd";
const INSTALL = "/usr/bin/mariadb-install-db";

/** Whether Debian's mariadb-server is installed. */
export const hasMariadb = isAsked && existsSync(SERVE) && existsSync(INSTALL);

export interface RealMariadb {
  readonly port: number;
  stop(): Promise<void>;
}

/** A MariaDB on 127.0.0.1 whose `root` needs no password, with one empty database. */
export async function startRealMariadb(database: string): Promise<RealMariadb> {
  const dir = await mkdtemp(join(tmpdir(), "berth-mariadb-"));
  const data = join(dir, "data");
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    const user = await userFor(dir);
    const common = ["--no-defaults", `--datadir=${data}`, `--user=${user}`];
    await promisify(execFile)(INSTALL, [...common, "--auth-root-authentication-method=normal", "--skip-test-db"]);
    const server = await startChildServer({
      command: SERVE,
      args: (port) => [
        ...common,
        `--port=${port}`,
        "--bind-address=127.0.0.1",
        `--socket=${join(dir, "socket")}`,
        "--skip-log-bin",
      ],
      // The server speaks first, with bytes that begin with a length.
      answer: "",
    });
    const connection = await createConnection({ host: "127.0.0.1", port: server.port, user: "root" });
    await connection.query(`create database ${database} character set utf8`);
    await connection.end();
    return {
      port: server.port,
      stop: async () => {
        await server.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Root runs the server as the package's own user, who then owns the directory. */
async function userFor(dir: string): Promise<string> {
  if (process.getuid?.() !== 0) return userInfo().username;
  const ids = await Promise.all(["-u", "-g"].map((flag) => promisify(execFile)("id", [flag, "mysql"])));
  const [uid, gid] = ids.map(({ stdout }) => Number(stdout));
  await chown(dir, uid!, gid!);
  return "mysql";
}
