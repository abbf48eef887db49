import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChildServer } from "../../runtime/child-server.ts";
import { isAsked } from "./is-asked.ts";
import type { RealCloud } from "./real-cloud.ts";
import { ADMIN_PASSWORD, tokenSettings } from "./real-keystone.ts";

// Debian's packages masakari-api and masakari-engine are used.
const PASTE = "/etc/masakari/api-paste.ini";
const PROGRAM = join(import.meta.dirname, "masakari_for_tests.py");

/** Whether Debian's Masakari is installed. */
export const hasMasakari = isAsked && existsSync(PASTE) && existsSync("/usr/bin/masakari-engine");

export interface RealMasakari {
  /** With `/v1/PROJECT` of the administrator's project. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts Masakari's API and engine in one process on sqlite, without RabbitMQ, beside a cloud. */
export async function startRealMasakari(cloud: RealCloud): Promise<RealMasakari> {
  const dir = await mkdtemp(join(tmpdir(), "berth-masakari-"));
  const remove = () => rm(dir, { recursive: true, force: true });
  const server = await startChildServer({
    command: "/usr/bin/python3",
    args: (port) => {
      writeFileSync(join(dir, "masakari.conf"), configuration(cloud, dir, port));
      return [PROGRAM, "--config-file", join(dir, "masakari.conf")];
    },
    readyMsMax: 300_000,
    greeting: "GET / HTTP/1.0\r\n\r\n",
    answer: "HTTP/1.",
  }).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const { projects } = await cloud.call("GET", `${cloud.keystone.url}/projects?name=admin`);
  return {
    url: `http://127.0.0.1:${server.port}/v1/${projects[0].id}`,
    stop: async () => {
      await server.stop();
      await remove();
    },
  };
}

/** It waits only as long as it must, since hosts of the test are fenced before it is told, but long for a machine that is busy. */
const configuration = ({ keystone, region }: RealCloud, dir: string, port: number): string => `[DEFAULT]
transport_url = fake:/
rpc_response_timeout = 600
masakari_api_listen = 127.0.0.1
masakari_api_listen_port = ${port}
masakari_api_workers = 1
auth_strategy = keystone
nova_catalog_admin_info = compute::publicURL
os_region_name = ${region}
os_privileged_user_name = admin
os_privileged_user_password = ${ADMIN_PASSWORD}
os_privileged_user_tenant = admin
os_user_domain_name = Default
os_project_domain_name = Default
os_privileged_user_auth_url = ${keystone.url}
duplicate_notification_detection_interval = 0
wait_period_after_service_update = 2
wait_period_after_evacuation = 600
wait_period_after_power_off = 600
wait_period_after_power_on = 600
process_unfinished_notifications_interval = 5
retry_notification_new_status_interval = 5
[wsgi]
api_paste_config = ${PASTE}
[database]
connection = sqlite:///${dir}/masakari.db
[coordination]
backend_url =
[oslo_concurrency]
lock_path = ${dir}
${tokenSettings(keystone)}`;
