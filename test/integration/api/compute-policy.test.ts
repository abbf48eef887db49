import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SERVER_ACTIONS } from "../../../services/api/compute/server-actions/server-actions.ts";
import type { TokenIdentity } from "../../../services/api/identity/token-identity.ts";
import { computeDefaults } from "../../../services/api/policy/compute-rules.ts";
import { Policy } from "../../../services/api/policy/policy.ts";
import { ApiRig } from "./api-rig.ts";
import { DEMANDS, type Demand, PART_DEMANDS } from "./policy-demands.ts";

/** The roles of tokens, with those that a role implies, which Keystone adds. */
const ROLES = {
  none: ["auditor"],
  reader: ["reader"],
  member: ["member", "reader"],
  manager: ["manager", "member", "reader"],
  admin: ["admin", "manager", "member", "reader"],
  service: ["service"],
} as const;
type Role = keyof typeof ROLES;
const EVERY_ROLE = Object.keys(ROLES) as readonly Role[];

/** Who may do what each demand asks for, to something of the own project. */
const ADMITTED: Readonly<Record<string, readonly Role[]>> = {
  anybody: EVERY_ROLE,
  readers: ["reader", "member", "manager", "admin"],
  members: ["member", "manager", "admin"],
  managers: ["manager", "admin"],
  services: ["admin", "service"],
  admins: ["admin"],
};

const OWN = "11111111111111111111111111111111";
const OTHER = "22222222222222222222222222222222";

/** A token is `role.project`, and its user has the name of the role. */
async function authenticate({
  headers,
}: {
  readonly headers: Readonly<Record<string, unknown>>;
}): Promise<TokenIdentity> {
  const [role = "", projectId = ""] = String(headers["x-auth-token"]).split(".");
  return { userId: role, projectId, systemScope: null, domainId: null, roles: ROLES[role as Role] };
}

/** Keeps the names of the rules that are asked for. */
class RecordingPolicy extends Policy {
  readonly asked = new Set<string>();

  override allows(...[rule, identity, target]: Parameters<Policy["allows"]>): boolean {
    this.asked.add(rule);
    return super.allows(rule, identity, target);
  }
}

const policy = new RecordingPolicy(computeDefaults());
let rig: ApiRig;
let server: string;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "keystone" }, null, authenticate, null, policy);
  server = await rig.bootActive("north", 0, { networks: "none" }, asked(`member.${OWN}`, 60));
});
afterAll(() => rig.close());

const asked = (token: string, minor: number) => ({
  "x-auth-token": token,
  "openstack-api-version": `compute 2.${minor}`,
});

async function statusOf({ method, path, minor, body }: Demand, token: string): Promise<number> {
  const url = `/v2.1${path.replace(":id", server).replace(":project", OWN)}`;
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const headers = { ...asked(token, minor), ...(body !== undefined && { "content-type": "application/json" }) };
  return (await rig.call({ method, url, headers, ...payload })).statusCode;
}

const named = ({ method, path, minor, body }: Demand) => `${method} ${path} 2.${minor} ${JSON.stringify(body) ?? ""}`;
const refusedRoles = async (demand: Demand, project: string): Promise<readonly Role[]> => {
  const refused: Role[] = [];
  for (const role of EVERY_ROLE) if ((await statusOf(demand, `${role}.${project}`)) === 403) refused.push(role);
  return refused;
};

describe("the policy of the Compute API, with Nova's defaults", () => {
  test("names every route and every action", () => {
    const tested = new Set(DEMANDS.map(({ method, path }) => `${method} ${path.split("?")[0]}`));
    const isTested = (method: string, url: string) => {
      const pattern = new RegExp(`^${method} ${url.replace("/v2.1", "").replaceAll(/:\w+/g, "[^/]+")}$`);
      return [...tested].some((one) => pattern.test(one));
    };
    const missing = rig.api.http.knownRoutes!()
      .filter(
        ({ url, method, facts }) => url.startsWith("/v2.1/") && method !== "HEAD" && !facts.public && !facts.removed,
      )
      .filter(({ url, method }) => !isTested(method, url))
      .map(({ url, method }) => `${method} ${url}`);
    expect(missing).toEqual([]);
    const actions = DEMANDS.flatMap(({ path, body }) =>
      path === "/servers/:id/action" ? Object.keys(body as object) : [],
    );
    expect(actions.toSorted()).toEqual([...SERVER_ACTIONS.keys()].toSorted());
  });

  test("gives callers of another project nothing of a server: neither readers nor members nor managers", async () => {
    const ofServer = DEMANDS.filter(({ path, demand }) => /^\/servers\/:id/.test(path) && demand !== "services");
    for (const demand of ofServer) {
      for (const role of ["none", "reader", "member", "manager", "service"] as const) {
        const status = await statusOf(demand, `${role}.${OTHER}`);
        expect([named(demand), role, status === 403 || status === 404]).toEqual([named(demand), role, true]);
      }
    }
    const ofProject = DEMANDS.filter(({ path }) => path.includes(":project") && !path.endsWith("/defaults"));
    for (const demand of ofProject)
      expect([named(demand), await refusedRoles(demand, OTHER)]).toEqual([
        named(demand),
        EVERY_ROLE.filter((role) => role !== "admin"),
      ]);
  });

  test.each(DEMANDS.map((demand) => [named(demand), demand.demand, demand] as const))(
    "%s is for %s",
    async (_name, admitted, demand) => {
      const refused = EVERY_ROLE.filter((role) => !ADMITTED[admitted]!.includes(role));
      expect(await refusedRoles(demand, OWN)).toEqual(refused);
    },
  );
});

/** Rules that calls of this cloud cannot ask for, with the file whose tests ask for them. */
const ASKED_ELSEWHERE = {
  "network:attach_external_network": "rules-with-neighbours.test.ts",
  "os_compute_api:servers:create_image:allow_volume_backed": "rules-with-neighbours.test.ts",
};

test("every rule is asked for by some call, or by the tests of another file", async () => {
  server = await rig.bootActive("north", 1, { networks: "none" }, asked(`member.${OWN}`, 60));
  const actions = await rig.get(`/v2.1/servers/${server}/os-instance-actions`, asked(`member.${OWN}`, 60));
  const request = actions.json().instanceActions[0].request_id;
  const flavor = { id: "diskless", name: "diskless", vcpus: 1, ram: 64, disk: 0 };
  await rig.post("/v2.1/flavors", { flavor }, asked(`admin.${OWN}`, 60));
  const lock = (token: string, action: string) =>
    rig.post(`/v2.1/servers/${server}/action`, { [action]: null }, asked(token, 60));
  policy.asked.clear();
  expect((await lock(`admin.${OTHER}`, "lock")).statusCode).toBe(202);
  expect((await lock(`member.${OWN}`, "unlock")).statusCode).toBe(403);
  expect((await lock(`admin.${OTHER}`, "unlock")).statusCode).toBe(202);
  const zero = { server: { name: "s", flavorRef: "diskless", imageRef: OWN, networks: "none" } };
  expect((await rig.post("/v2.1/servers", zero, asked(`member.${OWN}`, 60))).statusCode).toBe(403);
  for (const role of ["admin", "member"] as const) {
    for (const { path, ...demand } of PART_DEMANDS)
      await statusOf({ ...demand, path: path.replace(":request", request) }, `${role}.${OWN}`);
  }
  for (const demand of DEMANDS) await statusOf(demand, `admin.${OWN}`);
  const rules = Object.keys(computeDefaults()).filter((rule) => rule.includes(":") && !policy.asked.has(rule));
  expect(rules.toSorted()).toEqual(Object.keys(ASKED_ELSEWHERE));
});

describe("overrides of the policy", () => {
  const show = { method: "GET", path: "/servers/:id", demand: "", minor: 60, body: undefined } as const;
  test("open a route to another role, and close it for an admin of another project", async () => {
    server = await rig.bootActive("north", 1, { networks: "none" }, asked(`member.${OWN}`, 60));
    policy.replaceOverrides({ "os_compute_api:servers:show": "role:auditor or rule:project_reader_api" });
    expect(await statusOf(show, `none.${OWN}`)).toBe(200);
    expect(await statusOf(show, `admin.${OWN}`)).toBe(200);
    expect(await statusOf(show, `admin.${OTHER}`)).toBe(403);
    expect(await statusOf(show, `reader.${OTHER}`)).toBe(404);
    policy.replaceOverrides({});
    expect(await statusOf(show, `none.${OWN}`)).toBe(403);
    expect(await statusOf(show, `admin.${OTHER}`)).toBe(200);
  });

  test("say who is an admin, also in old files that ask for `is_admin`", async () => {
    policy.replaceOverrides({ context_is_admin: "role:service", "os_compute_api:os-services:list": "rule:admin_api" });
    const list = { ...show, path: "/os-services" };
    expect(await refusedRoles(list, OWN)).toEqual(EVERY_ROLE.filter((role) => role !== "service"));
    expect(await statusOf(show, `service.${OTHER}`)).toBe(200);
    expect(await statusOf(show, `admin.${OTHER}`)).toBe(404);
    policy.replaceOverrides({});
  });

  test("show the host of servers, and the details of actions, to whom they say", async () => {
    const fieldsFor = async (token: string) =>
      Object.keys((await rig.get(`/v2.1/servers/${server}`, asked(token, 96))).json().server);
    expect(await fieldsFor(`member.${OWN}`)).not.toContain("OS-EXT-SRV-ATTR:host");
    expect(await fieldsFor(`admin.${OWN}`)).toEqual(expect.arrayContaining(["OS-EXT-SRV-ATTR:host", "host_status"]));
    policy.replaceOverrides({
      "os_compute_api:os-extended-server-attributes": "role:member",
      "os_compute_api:servers:show:host_status": "!",
    });
    expect(await fieldsFor(`member.${OWN}`)).toContain("OS-EXT-SRV-ATTR:host");
    expect(await fieldsFor(`admin.${OWN}`)).not.toContain("host_status");
    policy.replaceOverrides({});
  });

  test("open flavors without a disk to others than admins", async () => {
    const flavor = { id: "no-disk", name: "no-disk", vcpus: 1, ram: 64, disk: 0 };
    const make = { method: "POST", path: "/flavors", demand: "", minor: 60, body: { flavor } } as const;
    expect(await statusOf(make, `admin.${OWN}`)).toBe(200);
    const body = { server: { name: "s", flavorRef: "no-disk", imageRef: OWN, networks: "none" } };
    const create = { method: "POST", path: "/servers", demand: "", minor: 60, body } as const;
    expect(await statusOf(create, `member.${OWN}`)).toBe(403);
    expect(await statusOf(create, `admin.${OWN}`)).toBe(202);
    policy.replaceOverrides({ "os_compute_api:servers:create:zero_disk_flavor": "rule:project_member_api" });
    expect(await statusOf(create, `member.${OWN}`)).toBe(202);
    policy.replaceOverrides({});
  });

  test("close networks and volumes of new servers", async () => {
    const bootWith = async (fields: object) => {
      const create = { method: "POST", path: "/servers", demand: "", minor: 60 } as const;
      const body = { server: { name: "s", flavorRef: "no such flavor", networks: "none", ...fields } };
      return statusOf({ ...create, body }, `member.${OWN}`);
    };
    const parts = {
      attach_network: [{ networks: "auto" }, { networks: [{ port: OWN }] }],
      attach_volume: [
        { block_device_mapping_v2: [{ source_type: "volume", uuid: OWN, boot_index: 0 }] },
        { block_device_mapping: [{ volume_id: OWN }] },
      ],
    };
    for (const [rule, all] of Object.entries(parts)) {
      for (const fields of all) {
        expect(await bootWith(fields)).toBe(400);
        policy.replaceOverrides({ [`os_compute_api:servers:create:${rule}`]: "!" });
        expect([fields, await bootWith(fields)]).toEqual([fields, 403]);
        expect(await bootWith({ networks: [] })).toBe(400);
        policy.replaceOverrides({});
      }
    }
  });
});
