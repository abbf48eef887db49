import { MINOR_MAX } from "../../../services/api/http/microversion.ts";
import type { Sample } from "./sample-library.ts";

/** Folders of APIs that Nova has removed at every microversion, each with a path that must answer 410. */
export const REMOVED: Readonly<Record<string, string>> = {
  consoles: "/servers/1/consoles",
  "os-agents": "/os-agents",
  "os-cells": "/os-cells",
  "os-certificates": "/os-certificates/root",
  "os-cloudpipe": "/os-cloudpipe",
  "os-fixed-ips": "/os-fixed-ips/10.0.0.1",
  "os-floating-ip-dns": "/os-floating-ip-dns",
  "os-floating-ips-bulk": "/os-floating-ips-bulk",
  "os-fping": "/os-fping",
  "os-security-group-default-rules": "/os-security-group-default-rules",
  "os-virtual-interfaces": "/servers/1/os-virtual-interfaces",
};

/** Folders of routes that only pass requests on to another service, which Nova has up to 2.35. */
export const PROXIES: ReadonlySet<string> = new Set([
  "images",
  "os-baremetal-nodes",
  "os-floating-ip-pools",
  "os-floating-ips",
  "os-networks",
  "os-networks-associate",
  "os-snapshots",
  "os-tenant-networks",
  "os-volumes",
]);

/** Why a sample is not expected to pass, by `folder` or `folder/name`. */
const NO_SNAPSHOTS =
  "the servers of this test have no volumes of Cinder; test/integration/api/assisted-snapshots.test.ts has them";
const NO_CONSOLES = "guests have serial and VNC consoles only";
const NO_POWER =
  "no driver switches hosts on and off or has a maintenance mode; Nova's libvirt driver answers 501, too";
const REASONS: Readonly<Record<string, string>> = {
  "os-assisted-volume-snapshots": NO_SNAPSHOTS,
  "os-console-auth-tokens/create-spice-direct-console-req": NO_CONSOLES,
  "os-hosts/host-get-reboot": NO_POWER,
  "os-hosts/host-get-shutdown": NO_POWER,
  "os-hosts/host-get-startup": NO_POWER,
  "os-hosts/host-put-maintenance-req": NO_POWER,
  "os-hosts/host-put-maintenance-resp": NO_POWER,
  ...Object.fromEntries(
    ["get-rdp-console-post", "get-spice-console-post", "create-mks-console"].flatMap((name) =>
      [`${name}-req`, `${name}-resp`].map((sample) => [`os-remote-consoles/${sample}`, NO_CONSOLES]),
    ),
  ),
  "os-remote-consoles/create-spice-direct-console-req": NO_CONSOLES,
  "os-remote-consoles/create-spice-direct-console-resp": NO_CONSOLES,
  "os-server-shares":
    "no driver passes a shared file system on to its guests; a Nova without virtiofs answers 409, too",
  "os-server-topology":
    "no driver gives its guests hardware threads, so no vCPU has siblings, and this cloud's driver pins no CPU",
};

/** The reason that a sample is an exception, or null. */
export function exceptionOf({ folder, minor, name }: Sample): string | null {
  if (minor > MINOR_MAX) return `needs 2.${minor}, and Berth announces 2.1 to 2.${MINOR_MAX}`;
  return REASONS[`${folder}/${name}`] ?? REASONS[folder] ?? null;
}
