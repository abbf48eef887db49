import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type ChildServer, startChildServer } from "../../runtime/child-server.ts";

// Debian's packages openstack-dashboard and python3-django-horizon are used.
const STATIC_FILES = "/var/lib/openstack-dashboard/static/dashboard/manifest.json";
const PROGRAM = join(import.meta.dirname, "horizon_for_tests.py");

/** Whether Debian's openstack-dashboard is installed. Its package compresses the static files at the end of its installation. */
export const hasHorizon = existsSync(STATIC_FILES);

/** Starts Horizon on 127.0.0.1 for the cloud whose identity service has this URL (with `/v3`). Cost: some five seconds. */
export function startRealHorizon(identityUrl: string): Promise<ChildServer> {
  const key = randomBytes(32).toString("hex");
  const environment = [
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONWARNINGS=ignore",
    `HORIZON_KEYSTONE_URL=${identityUrl}`,
    // It signs cookies for as long as the test runs, on this machine alone.
    `HORIZON_SECRET_KEY=${key}`,
  ];
  return startChildServer({
    command: "/usr/bin/env",
    args: (port) => [...environment, "/usr/bin/python3", PROGRAM, String(port)],
    readyMsMax: 60_000,
    greeting: "GET /static/dashboard/manifest.json HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n",
    answer: "HTTP/1.0 200",
  });
}
