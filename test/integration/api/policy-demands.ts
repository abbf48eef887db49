/** A route or an action, and who may call it for something of the own project. */
export interface Demand {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below `/v2.1`, with `:id` for a server and other names for what does not exist. */
  readonly path: string;
  readonly demand: string;
  /** A microversion that has the route. */
  readonly minor: number;
  readonly body: unknown;
}

/** By demand, as Nova's policies have it (with `enforce_new_defaults`): method, path, and a microversion other than 2.60. */
const ROUTES: Readonly<Record<string, string>> = {
  anybody: `
    GET /extensions
    GET /extensions/os-keypairs
    GET /flavors
    GET /flavors/detail
    GET /flavors/1
    GET /images 2.1
    GET /images/detail 2.1
    GET /images/none 2.1
    DELETE /images/none 2.1
    GET /images/none/metadata 2.1
    POST /images/none/metadata 2.1
    PUT /images/none/metadata 2.1
    GET /images/none/metadata/key 2.1
    PUT /images/none/metadata/key 2.1
    DELETE /images/none/metadata/key 2.1
    POST /os-baremetal-nodes 2.1
    DELETE /os-baremetal-nodes/none 2.1
    POST /os-baremetal-nodes/none/action 2.1
    GET /os-floating-ip-pools 2.1
    GET /limits
    GET /versions/v2.1
    GET /os-availability-zone
    GET /os-quota-sets/:project/defaults
    GET /os-keypairs
    POST /os-keypairs
    GET /os-keypairs/key
    DELETE /os-keypairs/key
  `,
  readers: `
    GET /flavors/1/os-extra_specs
    GET /flavors/1/os-extra_specs/key
    GET /os-floating-ips 2.1
    GET /os-floating-ips/none 2.1
    GET /os-networks 2.1
    GET /os-networks/none 2.1
    GET /os-tenant-networks 2.1
    GET /os-tenant-networks/none 2.1
    GET /os-snapshots 2.1
    GET /os-snapshots/detail 2.1
    GET /os-snapshots/none 2.1
    GET /os-volumes 2.1
    GET /os-volumes/detail 2.1
    GET /os-volumes/none 2.1
    GET /os-quota-sets/:project
    GET /os-quota-sets/:project/detail
    GET /os-security-groups 2.1
    GET /os-security-groups/none 2.1
    GET /os-server-groups
    GET /os-server-groups/none
    GET /os-simple-tenant-usage/:project
    GET /servers
    GET /servers/detail
    GET /servers/:id
    GET /servers/:id/ips
    GET /servers/:id/ips/private
    GET /servers/:id/metadata
    GET /servers/:id/metadata/key
    GET /servers/:id/os-instance-actions
    GET /servers/:id/os-instance-actions/none
    GET /servers/:id/os-interface
    GET /servers/:id/os-interface/none
    GET /servers/:id/os-security-groups
    GET /servers/:id/os-server-password
    GET /servers/:id/os-volume_attachments
    GET /servers/:id/os-volume_attachments/none
    GET /servers/:id/shares 2.97
    GET /servers/:id/shares/none 2.97
    GET /servers/:id/tags
    GET /servers/:id/tags/tag
    GET /servers/:id/topology 2.78
  `,
  members: `
    POST /os-floating-ips 2.1
    DELETE /os-floating-ips/none 2.1
    POST /os-snapshots 2.1
    DELETE /os-snapshots/none 2.1
    POST /os-volumes 2.1
    DELETE /os-volumes/none 2.1
    POST /os-security-groups 2.1
    PUT /os-security-groups/none 2.1
    DELETE /os-security-groups/none 2.1
    POST /os-security-group-rules 2.1
    DELETE /os-security-group-rules/none 2.1
    POST /os-server-groups
    DELETE /os-server-groups/none
    POST /servers
    PUT /servers/:id
    POST /servers/:id/metadata
    PUT /servers/:id/metadata
    PUT /servers/:id/metadata/key
    DELETE /servers/:id/metadata/key
    POST /servers/:id/os-interface
    DELETE /servers/:id/os-interface/none
    DELETE /servers/:id/os-server-password
    POST /servers/:id/os-volume_attachments
    PUT /servers/:id/os-volume_attachments/11111111-1111-4111-8111-111111111111 2.85
    DELETE /servers/:id/os-volume_attachments/none
    POST /servers/:id/remote-consoles
    POST /servers/:id/shares 2.97
    DELETE /servers/:id/shares/none 2.97
    PUT /servers/:id/tags
    DELETE /servers/:id/tags
    PUT /servers/:id/tags/tag
    DELETE /servers/:id/tags/tag
  `,
  managers: `
    GET /os-migrations?project_id=:project 2.80
    GET /servers/:id/migrations
    DELETE /servers/:id/migrations/1
    POST /servers/:id/migrations/1/action
  `,
  services: `
    POST /os-assisted-volume-snapshots
    DELETE /os-assisted-volume-snapshots/none
    POST /os-server-external-events
    PUT /servers/:id/os-volume_attachments/11111111-1111-4111-8111-111111111111
  `,
  admins: `
    POST /flavors
    PUT /flavors/1
    DELETE /flavors/none
    POST /flavors/1/os-extra_specs
    PUT /flavors/1/os-extra_specs/key
    DELETE /flavors/1/os-extra_specs/key
    GET /flavors/1/os-flavor-access
    GET /limits?tenant_id=other
    GET /os-aggregates
    POST /os-aggregates
    GET /os-aggregates/9
    PUT /os-aggregates/9
    DELETE /os-aggregates/9
    POST /os-aggregates/9/images 2.81
    GET /os-availability-zone/detail
    GET /os-baremetal-nodes 2.1
    GET /os-baremetal-nodes/none 2.1
    GET /os-console-auth-tokens/none
    GET /os-hosts 2.1
    GET /os-hosts/none 2.1
    PUT /os-hosts/none 2.1
    GET /os-hosts/none/reboot 2.1
    GET /os-hosts/none/shutdown 2.1
    GET /os-hosts/none/startup 2.1
    GET /os-hypervisors
    GET /os-hypervisors/detail
    GET /os-hypervisors/statistics
    GET /os-hypervisors/none
    GET /os-hypervisors/none/search 2.1
    GET /os-hypervisors/none/servers 2.1
    GET /os-hypervisors/none/uptime
    GET /os-instance_usage_audit_log
    GET /os-instance_usage_audit_log/2020-01-01
    GET /os-migrations
    GET /os-quota-class-sets/default
    PUT /os-quota-class-sets/default
    PUT /os-quota-sets/:project
    DELETE /os-quota-sets/:project
    GET /os-services
    PUT /os-services/11111111-1111-4111-8111-111111111111
    DELETE /os-services/11111111-1111-4111-8111-111111111111
    GET /os-simple-tenant-usage
    GET /servers?all_tenants=1
    GET /servers/detail?all_tenants=1
    GET /servers/:id/diagnostics
    GET /servers/:id/migrations/1
    GET /os-keypairs?user_id=somebody
    GET /os-keypairs/key?user_id=somebody
    DELETE /os-keypairs/key?user_id=somebody
  `,
};

const ID = "11111111-1111-4111-8111-111111111111";
const METADATA = { metadata: { key: "value" } };
const BODIES: Readonly<Record<string, unknown>> = {
  "POST /os-keypairs": { keypair: { name: "key" } },
  "POST /os-server-groups": { server_group: { name: "g", policies: ["affinity"] } },
  "POST /servers": { server: { name: "s", flavorRef: "1", networks: "none" } },
  "PUT /servers/:id": { server: { name: "t" } },
  "POST /images/none/metadata": METADATA,
  "PUT /images/none/metadata": METADATA,
  "PUT /images/none/metadata/key": { meta: { key: "value" } },
  "POST /servers/:id/metadata": METADATA,
  "PUT /servers/:id/metadata": METADATA,
  "PUT /servers/:id/metadata/key": { meta: { key: "value" } },
  "POST /servers/:id/os-interface": { interfaceAttachment: { port_id: ID } },
  "POST /servers/:id/os-volume_attachments": { volumeAttachment: { volumeId: ID } },
  [`PUT /servers/:id/os-volume_attachments/${ID} 85`]: {
    volumeAttachment: { volumeId: ID, delete_on_termination: true },
  },
  [`PUT /servers/:id/os-volume_attachments/${ID} 60`]: { volumeAttachment: { volumeId: ID.replaceAll("1", "2") } },
  "POST /servers/:id/remote-consoles": { remote_console: { protocol: "vnc", type: "novnc" } },
  "POST /servers/:id/shares": { share: { share_id: ID } },
  "PUT /servers/:id/tags": { tags: ["tag"] },
  "POST /servers/:id/migrations/1/action": { force_complete: null },
  "POST /os-assisted-volume-snapshots": {
    snapshot: { volume_id: "v", create_info: { snapshot_id: "s", type: "qcow2", new_file: "f" } },
  },
  "POST /os-server-external-events": { events: [{ name: "network-changed", server_uuid: ID }] },
  "POST /os-security-groups": { security_group: { name: "g", description: "" } },
  "PUT /os-security-groups/none": { security_group: { name: "g", description: "" } },
  "POST /os-security-group-rules": { security_group_rule: { parent_group_id: ID } },
  "POST /os-baremetal-nodes/none/action": { add_interface: {} },
  "POST /flavors": { flavor: { name: "none", ram: 1, vcpus: 1, disk: 1 } },
  "PUT /flavors/1": { flavor: { description: "d" } },
  "POST /flavors/1/os-extra_specs": { extra_specs: { "trait:CUSTOM_A": "required" } },
  "PUT /flavors/1/os-extra_specs/key": { key: "value" },
  "POST /os-floating-ips": { pool: "none" },
  "POST /os-snapshots": { snapshot: { volume_id: ID } },
  "POST /os-volumes": { volume: { size: 1 } },
  "POST /os-aggregates": { aggregate: { name: "a" } },
  "POST /os-aggregates/9/images": { cache: [{ id: "155d900f-4e14-4e4c-a73d-069cbf4541e6" }] },
  "PUT /os-aggregates/9": { aggregate: { name: "b" } },
  "PUT /os-hosts/none": { status: "enable" },
  "PUT /os-quota-class-sets/default": { quota_class_set: {} },
  "PUT /os-quota-sets/:project": { quota_set: {} },
  [`PUT /os-services/${ID}`]: { status: "enabled" },
};

/** By demand: the actions of a server, with their values in the body and the microversion. */
const ACTIONS: Readonly<Record<string, Readonly<Record<string, readonly [value: unknown, minor: number]>>>> = {
  members: {
    addFixedIp: [{ networkId: "none" }, 43],
    addFloatingIp: [{ address: "203.0.113.1" }, 43],
    addSecurityGroup: [{ name: "none" }, 60],
    changePassword: [{ adminPass: "secret" }, 60],
    confirmResize: [null, 60],
    createBackup: [{ name: "b", backup_type: "daily", rotation: 1 }, 60],
    createImage: [{ name: "i" }, 60],
    lock: [null, 60],
    "os-getConsoleOutput": [{}, 60],
    "os-getSPICEConsole": [{ type: "spice-html5" }, 1],
    "os-getSerialConsole": [{ type: "serial" }, 1],
    "os-getVNCConsole": [{ type: "novnc" }, 1],
    "os-start": [null, 60],
    "os-stop": [null, 60],
    pause: [null, 60],
    reboot: [{ type: "HARD" }, 60],
    rebuild: [{ imageRef: ID }, 60],
    removeFixedIp: [{ address: "10.1.0.1" }, 43],
    removeFloatingIp: [{ address: "203.0.113.1" }, 43],
    removeSecurityGroup: [{ name: "none" }, 60],
    rescue: [null, 60],
    resize: [{ flavorRef: "1" }, 60],
    restore: [null, 60],
    resume: [null, 60],
    revertResize: [null, 60],
    shelve: [null, 60],
    suspend: [null, 60],
    trigger_crash_dump: [null, 60],
    unlock: [null, 60],
    unpause: [null, 60],
    unrescue: [null, 60],
    unshelve: [null, 60],
  },
  managers: {
    migrate: [null, 60],
    "os-migrateLive": [{ host: null, block_migration: "auto" }, 60],
  },
  admins: {
    evacuate: [{}, 60],
    injectNetworkInfo: [null, 60],
    "os-resetState": [{ state: "active" }, 60],
    shelveOffload: [null, 60],
  },
};

const FLAVOR_ACTIONS = ["addTenantAccess", "removeTenantAccess"];
const AGGREGATE_ACTIONS = { add_host: { host: "none" }, remove_host: { host: "none" }, set_metadata: METADATA };

const post = (demand: string, path: string, body: unknown, minor = 60): Demand => ({
  ...{ method: "POST", demand, path, body, minor },
});

function readRoutes(demand: string, text: string): readonly Demand[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [method = "", path = "", version = "2.60"] = line.trim().split(" ");
      const minor = Number(version.slice(2));
      const body = BODIES[`${method} ${path} ${minor}`] ?? BODIES[`${method} ${path}`];
      return { method: method as Demand["method"], path, demand, minor, body };
    });
}

/** Every call of the Compute API that has a policy. What ends or changes a server comes last. */
export const DEMANDS: readonly Demand[] = [
  ...Object.entries(ROUTES).flatMap(([demand, text]) => readRoutes(demand, text)),
  ...FLAVOR_ACTIONS.map((action) => post("admins", "/flavors/1/action", { [action]: { tenant: "p" } })),
  ...Object.entries(AGGREGATE_ACTIONS).map(([action, value]) =>
    post("admins", "/os-aggregates/9/action", { [action]: value }),
  ),
  ...Object.entries(ACTIONS).flatMap(([demand, actions]) =>
    Object.entries(actions).map(([action, [value, minor]]) =>
      post(demand, "/servers/:id/action", { [action]: value }, minor),
    ),
  ),
  post("members", "/servers/:id/action", { forceDelete: null }),
  { method: "DELETE", path: "/servers/:id", demand: "members", minor: 60, body: undefined },
];

const boot = (fields: object, minor = 90): Demand =>
  post(
    "members",
    "/servers",
    { server: { name: "s", flavorRef: "no such flavor", networks: "none", ...fields } },
    minor,
  );
const act = (action: string, value: unknown, minor = 90): Demand =>
  post("members", "/servers/:id/action", { [action]: value }, minor);

/** Calls that ask for the rules about parts of a body or of an answer, which no other call asks for. `:request` is the request that created the server. */
export const PART_DEMANDS: readonly Demand[] = [
  boot({ networks: "auto" }),
  boot({ block_device_mapping_v2: [{ source_type: "volume", destination_type: "volume", uuid: ID, boot_index: 0 }] }),
  boot({ imageRef: ID, trusted_image_certificates: ["certificate"] }),
  boot({ flavorRef: "1", availability_zone: "nova:none" }),
  boot({ flavorRef: "1", host: "none" }),
  { method: "GET", path: "/servers/:id", demand: "readers", minor: 90, body: undefined },
  { method: "GET", path: "/servers/:id/os-instance-actions/:request", demand: "readers", minor: 90, body: undefined },
  { method: "GET", path: "/os-server-groups?all_projects=1", demand: "readers", minor: 90, body: undefined },
  act("migrate", { host: "none" }),
  act("os-migrateLive", { host: "none", block_migration: "auto" }),
  act("unshelve", { host: "none" }, 91),
  act("rebuild", { imageRef: ID, trusted_image_certificates: ["certificate"] }),
];
