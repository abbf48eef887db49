import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChildServer } from "../../runtime/child-server.ts";
import { eventually } from "../rigs/eventually.ts";
import { isAsked } from "./is-asked.ts";
import { type RealKeystone, tokenSettings } from "./real-keystone.ts";

// Debian's packages cinder-api, cinder-scheduler and cinder-volume are used.
const PASTE = "/etc/cinder/api-paste.ini";
const FILTERS = "/etc/cinder/resource_filters.json";
const PROGRAM = join(import.meta.dirname, "cinder_for_tests.py");
const COPYING_DRIVER = join(import.meta.dirname, "copying_driver.py");
/** Lines of the configuration with which Cinder makes snapshots also of volumes in use, which its NFS driver does only with the help of Nova. */
export const COPIES_SNAPSHOTS = "[nfs]\nvolume_driver = copying_driver.CopyingDriver\n";
const EXPORT = "storage:/volumes";

/** Whether Debian's Cinder is installed. */
export const hasCinder = isAsked && existsSync("/usr/bin/cinder-volume") && existsSync(PASTE);

export interface RealCinder {
  readonly url: string;
  /** The directory below which hosts have Cinder's exports mounted, each under the name that Nova gives it. */
  readonly mounts: string;
  /** Makes a call as the project and returns the body of the answer. Throws if the answer is no success. */
  call(project: string, method: string, path: string, body?: unknown): Promise<Record<string, Record<string, string>>>;
  stop(): Promise<void>;
}

/**
 * Starts Cinder with its NFS driver, whose only share is a directory, on sqlite and without RabbitMQ. Without a Keystone, tokens are those that `cinder_for_tests.py`
 * knows, and `call` uses one of them. `more`: further lines of its configuration.
 */
export async function startRealCinder(keystone: RealKeystone | null = null, more = ""): Promise<RealCinder> {
  const dir = await mkdtemp(join(tmpdir(), "berth-cinder-"));
  const remove = () => rm(dir, { recursive: true, force: true });
  const mounts = join(dir, "mnt");
  await mkdir(join(mounts, createHash("md5").update(EXPORT).digest("hex")), { recursive: true });
  await writeFiles(dir, keystone === null);
  const server = await startChildServer({
    command: "/usr/bin/env",
    args: (port) => {
      const tokens = keystone === null ? "" : tokenSettings(keystone);
      writeFileSync(join(dir, "cinder.conf"), configuration(dir, port) + tokens + more);
      const program = ["/usr/bin/python3", join(dir, "cinder_for_tests.py")];
      return [
        `PYTHONPATH=${dir}`,
        `PATH=${dir}/bin:${process.env.PATH}`,
        ...program,
        "--config-file",
        join(dir, "cinder.conf"),
      ];
    },
    readyMsMax: 150_000,
    greeting: "GET / HTTP/1.0\r\n\r\n",
    answer: "HTTP/1.",
  }).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const url = `http://127.0.0.1:${server.port}`;
  const call: RealCinder["call"] = async (project, method, path, body) => {
    const headers = {
      ...{ "x-auth-token": project, "x-service-token": project, "content-type": "application/json" },
      "openstack-api-version": "volume 3.44",
    };
    const answer = await fetch(`${url}/v3/${path}`, { method, headers, body: JSON.stringify(body) ?? null });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? {} : JSON.parse(text);
  };
  const stop = async () => {
    await server.stop();
    await remove();
  };
  try {
    // The scheduler hears of the driver some time after the API answers.
    const token = (await keystone?.issue()) ?? "service-token";
    const hasDriver = async () => {
      const { pools } = await call(token, "GET", "scheduler-stats/get_pools");
      return Object.keys(pools ?? {}).length > 0;
    };
    await eventually("Cinder's scheduler knows the driver", hasDriver, { everyMs: 200, withinMs: 60_000 });
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, mounts, call, stop };
}

async function writeFiles(dir: string, hasOwnTokens: boolean): Promise<void> {
  await copyFile(PROGRAM, join(dir, "cinder_for_tests.py"));
  await copyFile(COPYING_DRIVER, join(dir, "copying_driver.py"));
  await copyFile(FILTERS, join(dir, "resource_filters.json"));
  await writeFile(join(dir, "nfs_shares"), `${EXPORT}\n`);
  // The driver looks whether there is such a program, and mounts nothing here.
  await mkdir(join(dir, "bin"));
  await symlink("/bin/true", join(dir, "bin", "mount.nfs"));
  const paste = await readFile(PASTE, "utf8");
  const filter = "\n[filter:token]\npaste.filter_factory = cinder_for_tests:token_filter\n";
  await writeFile(
    join(dir, "api-paste.ini"),
    hasOwnTokens ? paste.replaceAll(" authtoken keystonecontext ", " token keystonecontext ") + filter : paste,
  );
}

const configuration = (dir: string, port: number): string => `[DEFAULT]
auth_strategy = keystone
transport_url = fake:/
host = storage
my_ip = 127.0.0.1
osapi_volume_listen = 127.0.0.1
osapi_volume_listen_port = ${port}
osapi_volume_workers = 1
api_paste_config = ${dir}/api-paste.ini
resource_query_filters_file = ${dir}/resource_filters.json
state_path = ${dir}
enabled_backends = nfs
default_volume_type = __DEFAULT__
use_default_quota_class = false
[nfs]
volume_driver = cinder.volume.drivers.nfs.NfsDriver
volume_backend_name = nfs
nfs_shares_config = ${dir}/nfs_shares
nfs_mount_point_base = ${dir}/mnt
nas_secure_file_operations = true
nas_secure_file_permissions = true
[database]
connection = sqlite:///${dir}/cinder.db
[coordination]
backend_url = file://${dir}
[oslo_concurrency]
lock_path = ${dir}
`;
