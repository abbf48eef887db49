import { randomUUID } from "node:crypto";

/** How a test asks a route for a resource of another project. */
export interface TenantCase {
  /** The kind of Alice's resource whose id replaces `:id` in the path. */
  readonly of: "server" | "group" | "image" | "port" | "volume";
  readonly body?: unknown;
  readonly type?: string;
}
const PATCH = { type: "application/openstack-images-v2.1-json-patch", body: [{ op: "add", path: "/a", value: "b" }] };

/** The routes that name a resource of a project, by method and path. */
export const OF_PROJECTS: Readonly<Record<string, TenantCase>> = {
  "GET /v2.1/servers/:id": { of: "server" },
  "DELETE /v2.1/servers/:id": { of: "server" },
  "PUT /v2.1/servers/:id": { of: "server", body: { server: { name: "mine" } } },
  "GET /v2.1/servers/:id/metadata": { of: "server" },
  "POST /v2.1/servers/:id/metadata": { of: "server", body: { metadata: { a: "b" } } },
  "PUT /v2.1/servers/:id/metadata": { of: "server", body: { metadata: { a: "b" } } },
  "GET /v2.1/servers/:id/metadata/:key": { of: "server" },
  "PUT /v2.1/servers/:id/metadata/:key": { of: "server", body: { meta: { x: "b" } } },
  "DELETE /v2.1/servers/:id/metadata/:key": { of: "server" },
  "GET /v2.1/servers/:id/ips": { of: "server" },
  "GET /v2.1/servers/:id/ips/:label": { of: "server" },
  "GET /v2.1/servers/:id/os-server-password": { of: "server" },
  "DELETE /v2.1/servers/:id/os-server-password": { of: "server" },
  "GET /v2.1/servers/:id/os-security-groups": { of: "server" },
  "GET /v2.1/servers/:id/topology": { of: "server" },
  "GET /v2.1/servers/:id/tags": { of: "server" },
  "PUT /v2.1/servers/:id/tags": { of: "server", body: { tags: ["a"] } },
  "DELETE /v2.1/servers/:id/tags": { of: "server" },
  "GET /v2.1/servers/:id/tags/:tag": { of: "server" },
  "PUT /v2.1/servers/:id/tags/:tag": { of: "server" },
  "DELETE /v2.1/servers/:id/tags/:tag": { of: "server" },
  "GET /v2.1/servers/:id/os-instance-actions": { of: "server" },
  "GET /v2.1/servers/:id/os-instance-actions/:requestId": { of: "server" },
  "GET /v2.1/servers/:id/os-interface": { of: "server" },
  "POST /v2.1/servers/:id/remote-consoles": {
    of: "server",
    body: { remote_console: { protocol: "vnc", type: "novnc" } },
  },
  "POST /v2.1/servers/:id/os-interface": {
    of: "server",
    body: { interfaceAttachment: { port_id: "7a7a7a7a-7a7a-4a7a-8a7a-7a7a7a7a7a7a" } },
  },
  "GET /v2.1/servers/:id/os-interface/:portId": { of: "server" },
  "DELETE /v2.1/servers/:id/os-interface/:portId": { of: "server" },
  "POST /v2.1/servers/:id/os-volume_attachments": {
    of: "server",
    body: { volumeAttachment: { volumeId: "7a7a7a7a-7a7a-4a7a-8a7a-7a7a7a7a7a7a" } },
  },
  "GET /v2.1/servers/:id/os-volume_attachments": { of: "server" },
  "GET /v2.1/servers/:id/os-volume_attachments/:volumeId": { of: "server" },
  "PUT /v2.1/servers/:id/os-volume_attachments/:volumeId": {
    of: "server",
    body: { volumeAttachment: { volumeId: "7a7a7a7a-7a7a-4a7a-8a7a-7a7a7a7a7a7a" } },
  },
  "DELETE /v2.1/servers/:id/os-volume_attachments/:volumeId": { of: "server" },
  "GET /v2.1/os-server-groups/:id": { of: "group" },
  "DELETE /v2.1/os-server-groups/:id": { of: "group" },
  "GET /v2.1/images/:id": { of: "image" },
  "GET /image/v2/images/:id": { of: "image" },
  "PATCH /image/v2/images/:id": { of: "image", ...PATCH },
  "DELETE /image/v2/images/:id": { of: "image" },
  "GET /image/v2/images/:id/file": { of: "image" },
  "PUT /image/v2/images/:id/file": { of: "image", body: "bits", type: "application/octet-stream" },
  "GET /network/v2.0/ports/:id": { of: "port" },
  "DELETE /network/v2.0/ports/:id": { of: "port" },
  "GET /volume/v3/volumes/:id": { of: "volume" },
  "PUT /volume/v3/volumes/:id": { of: "volume", body: { volume: { name: "mine" } } },
  "DELETE /volume/v3/volumes/:id": { of: "volume" },
  "POST /volume/v3/volumes/:id/action": { of: "volume", body: { "os-set_bootable": { bootable: true } } },
  "GET /volume/v3/volumes/:id/metadata": { of: "volume" },
  "POST /volume/v3/volumes/:id/metadata": { of: "volume", body: { metadata: { a: "b" } } },
  "PUT /volume/v3/volumes/:id/metadata": { of: "volume", body: { metadata: { a: "b" } } },
  "GET /volume/v3/volumes/:id/metadata/:key": { of: "volume" },
  "PUT /volume/v3/volumes/:id/metadata/:key": {
    of: "volume",
    body: { meta: { "7a7a7a7a-7a7a-4a7a-8a7a-7a7a7a7a7a7a": "b" } },
  },
  "DELETE /volume/v3/volumes/:id/metadata/:key": { of: "volume" },
};
/** Each action is tried with a body of its own. */
export const ACTION_ROUTE = "POST /v2.1/servers/:id/action";
/** Routes without resources of a project, since flavors and default quotas belong to everybody. */
export const OF_EVERYBODY = /^GET \/v2\.1\/(flavors\/:\w+(\/|$)|os-quota-sets\/:id\/defaults$)/;

/** A valid body for each action. */
export const ACTION_BODIES: Readonly<Record<string, unknown>> = {
  resize: { flavorRef: "1" },
  migrate: null,
  "os-migrateLive": { host: null, block_migration: "auto" },
  evacuate: {},
  unshelve: null,
  rebuild: { imageRef: randomUUID() },
  confirmResize: null,
  revertResize: null,
  createImage: { name: "image" },
  createBackup: { name: "image", backup_type: "daily", rotation: 1 },
  lock: null,
  unlock: null,
  ...{ addFloatingIp: { address: "203.0.113.10" }, removeFloatingIp: { address: "203.0.113.10" } },
  addFixedIp: { networkId: randomUUID() },
  removeFixedIp: { address: "10.64.0.2" },
  addSecurityGroup: { name: "default" },
  removeSecurityGroup: { name: "default" },
  shelve: null,
  shelveOffload: null,
  "os-start": null,
  "os-stop": null,
  reboot: { type: "HARD" },
  pause: null,
  unpause: null,
  suspend: null,
  resume: null,
  trigger_crash_dump: null,
  rescue: { rescue_image_ref: randomUUID() },
  unrescue: null,
  forceDelete: null,
  restore: null,
  changePassword: { adminPass: "secret" },
  injectNetworkInfo: null,
  "os-resetState": { state: "error" },
  "os-getConsoleOutput": { length: 1 },
  "os-getVNCConsole": { type: "novnc" },
  "os-getSPICEConsole": { type: "spice-html5" },
  "os-getSerialConsole": { type: "serial" },
};
/** The actions that members may not call. */
export const FOR_ADMINS = [
  "migrate",
  "os-migrateLive",
  "evacuate",
  "shelveOffload",
  "injectNetworkInfo",
  "os-resetState",
];
