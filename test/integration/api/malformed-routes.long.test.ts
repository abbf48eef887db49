import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REMOVED_ROUTES } from "../../../services/api/compute/removed/removed-routes.ts";
import { startTestCloud, type TestCloud } from "../../rigs/test-cloud.ts";
import { ApiRig } from "./api-rig.ts";

/** A valid body for each route that takes one, by method and path. Every value in it is then replaced by malformed ones. */
const BODIES: Readonly<Record<string, readonly unknown[]>> = {
  "POST /v2.1/servers": [
    {
      server: {
        ...{ name: "web", flavorRef: "small", imageRef: randomUUID(), metadata: { a: "b" }, availability_zone: "nova" },
        ...{ networks: [{ port: randomUUID(), tag: "t" }], host: "h-0", hypervisor_hostname: "h-0", description: "d" },
        ...{ min_count: "1", security_groups: [{ name: "default" }], user_data: "", tags: ["t"], hostname: "web.x" },
      },
      "os:scheduler_hints": { group: randomUUID(), same_host: [randomUUID()], query: "[]", colour: ["red"] },
    },
  ],
  "PUT /v2.1/servers/:id": [
    { server: { name: "n", hostname: "h.n", description: "d", accessIPv4: "10.0.0.1", accessIPv6: "::1" } },
  ],
  "POST /v2.1/servers/:id/action": [
    { rebuild: { imageRef: randomUUID(), name: "n", metadata: { a: "b" }, adminPass: "x", description: "d" } },
    { rebuild: { imageRef: randomUUID(), user_data: "aGVsbG8=", accessIPv4: "10.0.0.1" } },
    { resize: { flavorRef: "small" } },
    { migrate: { host: "h-0" } },
    { "os-migrateLive": { host: "h-0", block_migration: "auto", force: "x" } },
    { evacuate: { host: "h-0", adminPass: "x" } },
    { unshelve: { availability_zone: "z", host: "h-0" } },
    { addSecurityGroup: { name: "default" } },
    { addFloatingIp: { address: "203.0.113.10", fixed_address: "10.64.0.2" } },
    { addFixedIp: { networkId: "n" } },
    { reboot: { type: "SOFT" } },
    { "os-resetState": { state: "error" } },
    { shelve: "x" },
    { lock: { locked_reason: "why" } },
  ],
  "POST /v2.1/servers/:id/metadata": [{ metadata: { a: "b" } }],
  "PUT /v2.1/servers/:id/metadata": [{ metadata: { a: "b" } }],
  "PUT /v2.1/servers/:id/metadata/:key": [{ meta: { a: "b" } }],
  "PUT /v2.1/servers/:id/tags": [{ tags: ["a"] }],
  "PUT /v2.1/servers/:id/tags/:tag": [null],
  "POST /v2.1/servers/:id/migrations/:migrationId/action": [{ force_complete: "x" }],
  "POST /v2.1/servers/:id/os-interface": [{ interfaceAttachment: { port_id: randomUUID(), tag: "t" } }],
  "POST /v2.1/servers/:id/os-volume_attachments": [
    { volumeAttachment: { volumeId: randomUUID(), device: "/dev/vdb", tag: "t", delete_on_termination: "true" } },
  ],
  "PUT /v2.1/servers/:id/os-volume_attachments/:volumeId": [
    {
      volumeAttachment: {
        ...{ volumeId: randomUUID(), id: randomUUID(), serverId: randomUUID(), device: "/dev/vdb", tag: "t" },
        delete_on_termination: true,
      },
    },
  ],
  "POST /v2.1/flavors": [
    { flavor: { id: "f", name: "f", vcpus: 1, ram: 1, disk: 0, description: "d", rxtx_factor: "1.0", swap: "1" } },
  ],
  "PUT /v2.1/flavors/:id": [{ flavor: { description: "d" } }],
  "POST /v2.1/flavors/:id/action": [{ addTenantAccess: { tenant: "p" } }, { removeTenantAccess: { tenant: "p" } }],
  "POST /v2.1/flavors/:flavorId/os-extra_specs": [{ extra_specs: { "hw:cpu_policy": "shared", other: "x" } }],
  "PUT /v2.1/flavors/:flavorId/os-extra_specs/:key": [{ other: "x" }],
  "POST /v2.1/os-server-groups": [
    { server_group: { name: "g", policy: "anti-affinity", rules: { max_server_per_host: "2" } } },
  ],
  "POST /v2.1/os-assisted-volume-snapshots": [
    { snapshot: { volume_id: "v", create_info: { snapshot_id: "s", type: "qcow2", new_file: "f", id: "i" } } },
  ],
  "POST /v2.1/os-server-external-events": [
    { events: [{ name: "network-changed", server_uuid: randomUUID(), tag: "t", status: "completed" }] },
  ],
  "POST /v2.1/os-keypairs": [{ keypair: { name: "k", type: "ssh", user_id: "u", public_key: "ssh-rsa AAAA" } }],
  "POST /v2.1/images/:id/metadata": [{ metadata: { a: "b" } }],
  "PUT /v2.1/images/:id/metadata": [{ metadata: { a: "b" } }],
  "PUT /v2.1/images/:id/metadata/:key": [{ meta: { x: "b" } }],
  "POST /v2.1/os-volumes": [
    {
      volume: {
        ...{ size: "1", display_name: "n", display_description: "d", metadata: { a: "b" }, volume_type: "t" },
        ...{ availability_zone: "z", snapshot_id: randomUUID() },
      },
    },
  ],
  "POST /v2.1/os-snapshots": [
    { snapshot: { volume_id: randomUUID(), force: "true", display_name: "n", display_description: "d" } },
  ],
  "POST /v2.1/os-floating-ips": [{ pool: "public" }],
  "POST /v2.1/os-security-groups": [{ security_group: { name: "g", description: "d" } }],
  "PUT /v2.1/os-security-groups/:id": [{ security_group: { name: "g", description: "d" } }],
  "POST /v2.1/os-security-group-rules": [
    {
      security_group_rule: {
        ...{ parent_group_id: randomUUID(), group_id: randomUUID(), ip_protocol: "tcp", from_port: 1, to_port: "2" },
        cidr: "192.0.2.0/24",
      },
    },
  ],
  "POST /network/v2.0/security-groups": [{ security_group: { name: "g", description: "d" } }],
  "PUT /network/v2.0/security-groups/:id": [{ security_group: { name: "g", description: "d" } }],
  "POST /network/v2.0/security-group-rules": [
    {
      security_group_rule: {
        ...{ security_group_id: randomUUID(), direction: "ingress", ethertype: "IPv4", protocol: "tcp" },
        ...{ port_range_min: 1, port_range_max: 2, remote_ip_prefix: "192.0.2.0/24", description: "d" },
      },
    },
  ],
  "PUT /network/v2.0/ports/:id": [{ port: { name: "n" } }],
  "PUT /v2.1/os-quota-sets/:id": [{ quota_set: { cores: "1", instances: 2, force: "true" } }],
  "PUT /v2.1/os-quota-class-sets/:id": [{ quota_class_set: { cores: "1", ram: 2 } }],
  "PUT /v2.1/os-services/:id": [
    { host: "h-0", binary: "nova-compute", disabled_reason: "why", forced_down: "true" },
    { host: "h-0", binary: "nova-compute" },
    { status: "disabled", disabled_reason: "why" },
  ],
  "POST /v2.1/servers/:id/shares": [{ share: { share_id: randomUUID(), tag: "t" } }],
  "POST /v2.1/servers/:id/remote-consoles": [{ remote_console: { protocol: "serial", type: "serial" } }],
  "PUT /v2.1/os-hosts/:name": [{ status: "disable", maintenance_mode: "enable" }],
  "POST /v2.1/os-baremetal-nodes": [{ node: {} }],
  "POST /v2.1/os-baremetal-nodes/:id/action": [{ add_interface: {} }, { remove_interface: {} }],
  "POST /v2.1/os-aggregates": [{ aggregate: { name: "a", availability_zone: "z" } }],
  "PUT /v2.1/os-aggregates/:id": [{ aggregate: { name: "a", availability_zone: "z" } }],
  "POST /v2.1/os-aggregates/:id/images": [{ cache: [{ id: "155d900f-4e14-4e4c-a73d-069cbf4541e6" }] }],
  "POST /v2.1/os-aggregates/:id/action": [
    { add_host: { host: "h-0" } },
    { remove_host: { host: "h-0" } },
    { set_metadata: { metadata: { a: "b" } } },
  ],
  "PUT /berth/v1/settings": [{ set: { default_availability_zone: "nova" }, unset: ["x"] }],
  "PUT /berth/v1/ratios": [
    { host: "h-0", ratios: { VCPU: 1 } },
    { aggregate: "1", ratios: { VCPU: 1 } },
  ],
  "POST /berth/v1/sync-aggregates": [{ dry_run: true }],
  "POST /berth/v1/deleted-images": [{ ids: [randomUUID()] }],
  "POST /berth/v1/servers/:server/volumes/:volume/settle": [{ guest_uses: "own" }],
  "PUT /berth/v1/hosts/:host": [{ disabled: true, reason: "why" }],
  "POST /berth/v1/explain": [
    { flavor: "small", image: randomUUID(), zone: "z", host: "h-0", project_id: "p", hints: { colour: "red" } },
  ],
  "POST /image/v2/images": [
    {
      id: randomUUID(),
      name: "i",
      tags: ["t"],
      owner: "p",
      disk_format: "raw",
      hw_disk_bus: "scsi",
      visibility: "private",
    },
  ],
  "PATCH /image/v2/images/:id": [[{ op: "add", path: "/name", value: "x" }]],
  "PUT /image/v2/images/:id/file": [null],
  "PUT /image/v2/images/:id/tags/:tag": [null],
  "POST /volume/v3/volumes": [
    {
      volume: {
        ...{ size: "1", name: "v", description: "d", metadata: { a: "b" }, availability_zone: "nova" },
        ...{ volume_type: "__DEFAULT__", imageRef: null, multiattach: false },
      },
      "OS-SCH-HNT:scheduler_hints": {},
    },
  ],
  "PUT /volume/v3/volumes/:id": [{ volume: { name: "v", description: "d", metadata: { a: "b" } } }],
  "POST /volume/v3/volumes/:id/action": [{ "os-set_bootable": { bootable: "true" } }],
  "POST /volume/v3/volumes/:id/metadata": [{ metadata: { a: "b" } }],
  "PUT /volume/v3/volumes/:id/metadata": [{ metadata: { a: "b" } }],
  "PUT /volume/v3/volumes/:id/metadata/:key": [{ meta: { x: "b" } }],
  "POST /network/v2.0/ports": [
    {
      port: {
        ...{ network_id: randomUUID(), name: "p", project_id: "p", tenant_id: "p" },
        resource_request: { request_groups: [{ id: randomUUID(), required: ["CUSTOM_X"], resources: { VCPU: 1 } }] },
      },
    },
  ],
};

/** Parts of paths and queries as they stand in a URL. A database cannot store the first ones as text. */
const UNREADABLE = ["%00", "a%00b", "%ff", "%zz", "%ed%a0%80", "%", "%c3%28"];
const ODD = [
  "-1",
  "99999999999999999999",
  "9".repeat(15),
  "%F0%9F%98%80",
  "'",
  "%22",
  "..%2f",
  "x".repeat(900),
  "null",
];
const ACTIONS_OF_SERVICES = ["enable", "disable", "disable-log-reason", "force-down"];
const PARAMETERS = [
  ...["limit", "marker", "offset", "name", "status", "host", "binary", "all_tenants", "user_id", "project_id", "uuid"],
  ...["changes-since", "changes-before", "instance_uuid", "migration_type", "source_compute", "flavor", "image", "x"],
  ...["reservation_id", "sort_key", "all_projects", "is_public", "minRam", "hypervisor_hostname_pattern"],
];
const VALUES = [
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udfff\ud800",
  "",
  "x".repeat(300),
  -1,
  2 ** 53,
  1e300,
  null,
  [],
  {},
  true,
];

/** Yields the document with each of its values and names replaced in turn. */
function* malformed(value: unknown): Generator<unknown> {
  yield* VALUES;
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, member] of value.entries())
      for (const wrong of malformed(member)) yield value.toSpliced(index, 1, wrong);
    return;
  }
  const members = Object.entries(value);
  for (const [name, member] of members) {
    for (const wrong of malformed(member)) yield { ...value, [name]: wrong };
    const others = members.filter(([other]) => other !== name);
    for (const wrong of ["\u0000", `${name}\u0000`, "\ud800", ""])
      yield Object.fromEntries([...others, [wrong, member]]);
  }
}

let cloud: TestCloud;
let routes: readonly { readonly method: string; readonly url: string }[];
let known: Readonly<Record<string, string>>;

beforeAll(async () => {
  const rig = await ApiRig.start({ volumes: "simple" });
  const removed = new Set(REMOVED_ROUTES.map(([url]) => `/v2.1${url}`));
  routes = rig.api.http.knownRoutes!().filter(
    ({ method, url }) => method !== "HEAD" && !url.startsWith("/compute") && !removed.has(url),
  );
  await rig.close();
  const hosts = [
    { name: "h-0", inventories: { VCPU: { total: 8 }, MEMORY_MB: { total: 8_192 }, DISK_GB: { total: 100 } } },
  ];
  cloud = await startTestCloud({ cells: [{ name: "cell-1", hosts }], schedulers: 1, conductors: 1, volumes: "simple" });
  await cloud.call("POST", "/v2.1/flavors", { flavor: { id: "small", name: "small", vcpus: 1, ram: 64, disk: 0 } });
  const server = { name: "s", flavorRef: "small", networks: "none" };
  const booted = await cloud.call("POST", "/v2.1/servers", { server });
  const image = await cloud.call("POST", "/image/v2/images", {});
  const volume = await cloud.call("POST", "/volume/v3/volumes", { volume: { size: 1 } });
  known = { server: booted.json.server.id, image: image.json.id, volume: volume.json.volume.id };
});
afterAll(() => cloud?.close());

/** Parameters that are read as numbers or times get the first odd values, and the others take turns. */
function oddValuesOf(parameter: string, index: number): readonly string[] {
  if (parameter === "marker") return ODD;
  const isRead = ["limit", "offset", "minRam", "changes-since", "changes-before"].includes(parameter);
  const first = isRead ? 0 : index % ODD.length;
  return ODD.slice(first, first + (isRead ? 3 : 1));
}

interface Sent {
  readonly method: string;
  /** The path as it stands in the request line, without escaping. */
  readonly path: string;
  readonly body?: string | Buffer;
  readonly type?: string;
  readonly version?: string;
}

/** Sends the request without a client library that would repair the path. */
function send({ method, path, body, type = "application/json", version = "compute 2.90" }: Sent) {
  const { hostname, port } = new URL(cloud.apiUrl);
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const headers = { "openstack-api-version": version, ...(body !== undefined && { "content-type": type }) };
    const asked = request({ hostname, port, method, path, headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      answer.on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

async function isNoFault(sent: Sent): Promise<string> {
  const { status, text } = await send(sent);
  const shown = `${sent.method} ${sent.path} ${String(sent.body ?? "").slice(0, 300)} -> ${status} ${text}`;
  expect(status, shown).toBeLessThan(500);
  return `${status} ${text}`;
}

/** The path with an existing id wherever the route takes one. */
function filled(url: string): string {
  const kinds = { "/images": known.image, "/servers/": known.server, "/volumes/": known.volume };
  const id = Object.entries(kinds).find(([part]) => url.includes(part))?.[1] ?? "1";
  return url
    .replace(":id", id)
    .replace(":flavorId", "small")
    .replace(":host", "h-0")
    .replace(":server", known.server ?? "")
    .replaceAll(/:\w+/g, "x");
}

describe("malformed input on every route", () => {
  it("has a valid body in the table above for each route that takes one", () => {
    const taking = routes.filter(({ method }) => ["POST", "PUT", "PATCH"].includes(method));
    expect(taking.map(({ method, url }) => `${method} ${url}`).toSorted()).toEqual(Object.keys(BODIES).toSorted());
  });

  it("is refused in paths, with 400 for text that no database can store", async () => {
    for (const { method, url } of routes) {
      const [body] = BODIES[`${method} ${url}`] ?? [];
      const parameters = url.match(/:\w+/g) ?? [];
      for (const parameter of parameters) {
        for (const value of [...UNREADABLE, ...ODD, ...(url.includes("os-services") ? ACTIONS_OF_SERVICES : [])]) {
          const path = filled(url.replace(parameter, value));
          const text = body === undefined ? {} : { body: JSON.stringify(body) };
          const type = method === "PATCH" ? { type: "application/openstack-images-v2.1-json-patch" } : {};
          const told = await isNoFault({ method, path, ...text, ...type });
          if (UNREADABLE.includes(value)) expect(told, `${method} ${path}`).toMatch(/^400 /);
          if (value.includes("%00")) expect(told, `${method} ${path}`).toContain(`attribute ${parameter.slice(1)}.`);
        }
      }
    }
  });

  it("is refused in queries, with 400 and the parameter's name for text that no database can store", async () => {
    for (const { method, url } of routes) {
      if (method !== "GET") continue;
      for (const [index, parameter] of PARAMETERS.entries()) {
        for (const value of parameter === "marker" ? UNREADABLE : ["%00", "%ff"]) {
          const path = `${filled(url)}?${parameter}=${value}`;
          const told = await isNoFault({ method, path });
          expect(told, path).toMatch(/^400 /);
          expect(told, path).toContain(`query parameters ${parameter}.`);
        }
        for (const value of oddValuesOf(parameter, index))
          await isNoFault({ method, path: `${filled(url)}?${parameter}=${value}` });
      }
    }
  });

  it("is refused in bodies, with 400 and the field's name for text that no database can store", async () => {
    for (const [name, bodies] of Object.entries(BODIES)) {
      const [method = "", url = ""] = name.split(" ");
      const paths = url.includes("os-services")
        ? ACTIONS_OF_SERVICES.map((action) => url.replace(":id", action))
        : [filled(url)];
      const type = method === "PATCH" ? { type: "application/openstack-images-v2.1-json-patch" } : {};
      for (const path of paths) {
        for (const body of bodies) {
          for (const wrong of malformed(body)) {
            const version = path.endsWith("/os-services/disable") ? { version: "compute 2.11" } : {};
            const text = JSON.stringify(wrong);
            const told = await isNoFault({ method, path, body: text, ...type, ...version });
            if (/\\u0000|\\ud800/.test(text)) expect(told, `${name} ${text}`).toMatch(/^400 .*(field\/attribute|body)/);
          }
        }
        const bytes = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
        expect(await isNoFault({ method, path, body: bytes, ...type })).toMatch(/^400 .*not UTF-8/);
      }
    }
  });
});
