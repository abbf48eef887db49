import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { SIMPLE_NETWORK } from "../../../services/api/network/simple-network.ts";
import { OWN_NETWORK, putContractNetworks } from "../../contract/networking.contract.ts";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor = 35) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const ANN = as("ann:one");
const GROUPS = "/v2.1/os-security-groups";
const RULES = "/v2.1/os-security-group-rules";

// The proxies pass calls on to Neutron, or to the security groups of Berth's own network.
describe.each(["simple", "neutron"] as const)("security groups with --networks %s", (networks) => {
  let rig: ApiRig;
  beforeEach(async () => {
    rig = await ApiRig.start({ networks, auth: "noauth2", quotas: QUOTA_DEFAULTS.unlimited });
    putContractNetworks(rig.networking);
    if (networks === "neutron")
      await rig.networking.securityGroups.ensureGroup({
        ...{
          id: "default-of-one",
          projectId: "one",
          name: "default",
          description: "Default security group",
          rules: [],
        },
      });
  });
  afterEach(() => rig.close());

  const network = networks === "simple" ? SIMPLE_NETWORK.id : OWN_NETWORK;
  async function create(name: string, headers = ANN) {
    const answer = await rig.post(GROUPS, { security_group: { name, description: "sites" } }, headers);
    expect([answer.statusCode, answer.body]).toEqual([200, expect.anything()]);
    return answer.json().security_group;
  }
  const boot = async (fields: object = {}) => {
    const server = { networks: [{ uuid: network }], ...fields };
    return rig.boot(server, as("ann:one", 90));
  };
  const namesOf = async (id: string) =>
    (await rig.get(`/v2.1/servers/${id}`, ANN))
      .json()
      .server.security_groups?.map(({ name }: { name: string }) => name);
  const act = async (id: string, action: string, name: string) =>
    (await rig.post(`/v2.1/servers/${id}/action`, { [action]: { name } }, as("ann:one", 90))).statusCode;

  test("groups are made, shown, listed, changed and deleted, and other projects do not see them", async () => {
    const group = await create("web");
    expect(group).toEqual({ id: group.id, name: "web", description: "sites", tenant_id: "one", rules: [] });
    expect((await rig.get(`${GROUPS}/${group.id}`, ANN)).json()).toEqual({ security_group: group });
    const listed = async (headers = ANN) =>
      (await rig.get(GROUPS, headers)).json().security_groups.map(({ name }: { name: string }) => name);
    expect(await listed()).toEqual(["default", "web"]);
    expect(await listed(as("bob:two"))).not.toContain("web");
    expect((await rig.get(`${GROUPS}/${group.id}`, as("bob:two"))).statusCode).toBe(404);
    expect((await rig.delete(`${GROUPS}/${group.id}`, as("bob:two"))).statusCode).toBe(404);
    expect((await rig.get(`${GROUPS}?all_tenants=1`, as("admin:two"))).json().security_groups).toContainEqual(group);
    expect((await rig.get(`${GROUPS}?limit=1&offset=1`, ANN)).json().security_groups).toEqual([group]);
    const values = { security_group: { name: "db", description: "" } };
    expect((await rig.put(`${GROUPS}/${group.id}`, values, ANN)).json().security_group).toMatchObject({ name: "db" });
    expect((await rig.delete(`${GROUPS}/${group.id}`, ANN)).statusCode).toBe(202);
    expect((await rig.get(`${GROUPS}/${group.id}`, ANN)).statusCode).toBe(404);
  });

  test("the networks are shown by the proxies up to 2.35", async () => {
    for (const path of ["/v2.1/os-networks", "/v2.1/os-tenant-networks"]) {
      const found = (await rig.get(path, ANN)).json().networks;
      expect(found).toContainEqual(
        expect.objectContaining({ id: network, label: networks === "simple" ? "shared" : "own" }),
      );
      expect((await rig.get(`${path}/${network}`, ANN)).json().network).toMatchObject({ id: network });
      expect((await rig.get(`${path}/none`, ANN)).statusCode).toBe(404);
      expect((await rig.get(path, as("ann:one", 36))).statusCode).toBe(404);
      if (networks === "neutron") expect((await rig.get(`${path}/${network}`, as("bob:two"))).statusCode).toBe(404);
    }
    expect((await rig.get("/v2.1/os-networks", ANN)).json().networks[0]).not.toHaveProperty("vlan");
    expect((await rig.get("/v2.1/os-networks", as("admin:one"))).json().networks[0]).toHaveProperty("vlan", null);
  });

  test("refuses what Nova refuses", async () => {
    expect((await rig.delete(`${GROUPS}/`, ANN)).statusCode).toBe(404);
    expect((await rig.get(`${GROUPS}/`, ANN)).statusCode).toBe(404);
    expect((await rig.get(`${GROUPS}/no-uuid`, ANN)).statusCode).toBe(400);
    expect((await rig.post(GROUPS, { security_group: { name: "web" } }, ANN)).statusCode).toBe(400);
    expect(
      (await rig.post(GROUPS, { security_group: { name: "x".repeat(256), description: "" } }, ANN)).statusCode,
    ).toBe(400);
    expect((await rig.post(GROUPS, { security_group: { name: "default", description: "" } }, ANN)).statusCode).toBe(
      400,
    );
    expect((await rig.get(GROUPS, as("ann:one", 36))).statusCode).toBe(404);
    const [group] = (await rig.get(GROUPS, ANN)).json().security_groups;
    if (networks === "simple") expect((await rig.delete(`${GROUPS}/${group.id}`, ANN)).statusCode).toBe(400);
  });

  test("rules let traffic in from a prefix or from a group", async () => {
    const [group, remote] = [await create("web"), await create("clients")];
    const add = (fields: object) =>
      rig.post(RULES, { security_group_rule: { parent_group_id: group.id, ...fields } }, ANN);
    const web = { ip_protocol: "tcp", from_port: 80, to_port: "81", cidr: "192.0.2.0/24" };
    const added = (await add(web)).json().security_group_rule;
    expect(added).toEqual({
      ...{ id: added.id, parent_group_id: group.id, ip_protocol: "tcp", from_port: 80, to_port: 81, group: {} },
      ip_range: { cidr: "192.0.2.0/24" },
    });
    expect((await add(web)).statusCode).toBe(400);
    const ping = (await add({ ip_protocol: "ICMP", from_port: -1, to_port: -1 })).json().security_group_rule;
    expect(ping).toMatchObject({ ip_protocol: "icmp", from_port: -1, to_port: -1, ip_range: { cidr: "0.0.0.0/0" } });
    const from = (await add({ ip_protocol: "udp", group_id: remote.id })).json().security_group_rule;
    expect(from).toMatchObject({
      from_port: 1,
      to_port: 65_535,
      group: { name: "clients", tenant_id: "one" },
      ip_range: {},
    });
    const shown = (await rig.get(`${GROUPS}/${group.id}`, ANN)).json().security_group;
    expect(shown.rules).toEqual([added, ping, from]);
    expect((await rig.delete(`${RULES}/${added.id}`, as("bob:two"))).statusCode).toBe(404);
    expect((await rig.delete(`${RULES}/${added.id}`, ANN)).statusCode).toBe(202);
    expect((await rig.delete(`${RULES}/${added.id}`, ANN)).statusCode).toBe(404);
  });

  test.each([
    { ip_protocol: "tcp", from_port: 81, to_port: 80 },
    { ip_protocol: "tcp", from_port: 0, to_port: 80 },
    { ip_protocol: "tcp", from_port: 80, to_port: 65_536 },
    { ip_protocol: "icmp", from_port: 256, to_port: 0 },
    { ip_protocol: "tcp", from_port: "http", to_port: 80 },
    { ip_protocol: "sctp", from_port: 1, to_port: 2 },
    { ip_protocol: "tcp", from_port: 80 },
    { from_port: 80, to_port: 80 },
    { ip_protocol: "tcp", from_port: 80, to_port: 80, cidr: "192.0.2.0/33" },
    { ip_protocol: "tcp", from_port: 80, to_port: 80, cidr: "192.0.2.0/0" },
  ])("refuses the rule %j", async (rule) => {
    const { id } = await create("web");
    const answer = await rig.post(RULES, { security_group_rule: { parent_group_id: id, ...rule } }, ANN);
    expect([answer.statusCode, answer.json().badRequest?.message]).toEqual([400, expect.any(String)]);
    expect((await rig.get(`${GROUPS}/${id}`, ANN)).json().security_group.rules).toEqual([]);
  });

  test("a server's ports are in the groups that its creation names", async () => {
    const group = await create("web");
    const id = await boot({ security_groups: [{ name: "web" }] });
    expect(await namesOf(id)).toEqual(["web"]);
    const detail = (await rig.get("/v2.1/servers/detail", ANN)).json().servers;
    expect(detail).toMatchObject([{ id, security_groups: [{ name: "web" }] }]);
    const listed = (await rig.get(`/v2.1/servers/${id}/os-security-groups`, as("ann:one", 90))).json();
    expect(listed.security_groups).toEqual([group]);
    expect((await rig.delete(`${GROUPS}/${group.id}`, ANN)).statusCode).toBe(400);
    expect(await namesOf(await boot({ security_groups: [{ name: group.id }, { name: "default" }] }))).toEqual(
      expect.arrayContaining(["web", "default"]),
    );
    expect(await namesOf(await boot())).toEqual(["default"]);
  });

  test.runIf(networks === "simple")(
    "a server's default group is shown with the rules that were added to it",
    async () => {
      const id = await boot();
      const [group] = (await rig.get(GROUPS, ANN)).json().security_groups;
      const rule = { parent_group_id: group.id, ip_protocol: "tcp", from_port: 22, to_port: 22, cidr: "192.0.2.0/24" };
      const added = (await rig.post(RULES, { security_group_rule: rule }, ANN)).json().security_group_rule;
      const { security_groups } = (await rig.get(`/v2.1/servers/${id}/os-security-groups`, ANN)).json();
      expect(security_groups).toMatchObject([{ id: group.id, rules: expect.arrayContaining([added]) }]);
    },
  );

  test("refuses a creation with a group that does not exist, or whose name is not unique", async () => {
    const create90 = (name: string) =>
      rig.post(
        "/v2.1/servers",
        { server: { name: "s", flavorRef: "1", networks: [{ uuid: network }], security_groups: [{ name }] } },
        as("ann:one", 90),
      );
    expect((await create90("none")).statusCode).toBe(400);
    await create("twice");
    await create("twice");
    expect((await create90("twice")).statusCode).toBe(409);
  });

  test("servers get groups and lose them", async () => {
    await create("web");
    const id = await boot();
    expect(await act(id, "addSecurityGroup", "web")).toBe(202);
    expect(await namesOf(id)).toEqual(expect.arrayContaining(["default", "web"]));
    expect(await act(id, "addSecurityGroup", "web")).toBe(400);
    expect(await act(id, "removeSecurityGroup", "default")).toBe(202);
    expect(await namesOf(id)).toEqual(["web"]);
    expect(await act(id, "removeSecurityGroup", "default")).toBe(404);
    expect(await act(id, "removeSecurityGroup", "web")).toBe(202);
    expect(await namesOf(id)).toBeUndefined();
    expect(await act(id, "addSecurityGroup", "none")).toBe(404);
    expect(await act(id, "addSecurityGroup", " ")).toBe(400);
    const without = await boot({ networks: "none" });
    expect(await act(without, "addSecurityGroup", "web")).toBe(404);
    expect(await namesOf(without)).toBeUndefined();
  });

  test("a group is added to the ports that are not in it, and refused if there is none", async () => {
    await create("web");
    const made = { port: { network_id: network } };
    const port =
      networks === "simple"
        ? (await rig.post("/network/v2.0/ports", made, ANN)).json().port.id
        : rig.networking.putPort({ projectId: "one", networkId: network }).id;
    // Only the port that is made for the server is in its groups.
    const id = await boot({ networks: [{ uuid: network }, { port }], security_groups: [{ name: "web" }] });
    expect(await act(id, "addSecurityGroup", "web")).toBe(202);
    const twice = await rig.post(
      `/v2.1/servers/${id}/action`,
      { addSecurityGroup: { name: "web" } },
      as("ann:one", 90),
    );
    expect([twice.statusCode, twice.json().badRequest.message]).toEqual([
      400,
      expect.stringMatching(/^Invalid input for security_groups\. Reason: Duplicate items in the list: '.+'\.$/),
    ]);
    expect(await act(id, "removeSecurityGroup", "web")).toBe(202);
    expect((await namesOf(id)) ?? []).not.toContain("web");
  });

  test("an admin puts a server into a group of the admin's project, although the server's project never asked for its own", async () => {
    const { id: webId } = await create("web", as("admin:two"));
    const id = await boot();
    const asAdmin = as("admin:two", 90);
    const ask = async (action: string, name: string) =>
      (await rig.post(`/v2.1/servers/${id}/action`, { [action]: { name } }, asAdmin)).statusCode;
    expect(await ask("addSecurityGroup", "web")).toBe(202);
    const shown = (await rig.get(`/v2.1/servers/${id}/os-security-groups`, as("admin:two"))).json().security_groups;
    expect(shown.map(({ name }: { name: string }) => name).toSorted()).toEqual(["default", "web"]);
    expect((await rig.delete(`${GROUPS}/${webId}`, as("admin:two"))).statusCode).toBe(400);
    expect(await ask("removeSecurityGroup", "web")).toBe(202);
    expect(await namesOf(id)).toEqual(["default"]);
  });

  test("of groups that are added at the same time, the server gets all", async () => {
    const names = ["a", "b", "c"];
    for (const name of names) await create(name);
    const id = await boot();
    expect(await Promise.all(names.map((name) => act(id, "addSecurityGroup", name)))).toEqual([202, 202, 202]);
    expect(await namesOf(id)).toEqual(expect.arrayContaining(["default", ...names]));
  });
});

describe("the Networking API of Berth's own network", () => {
  let rig: ApiRig;
  beforeEach(async () => {
    rig = await ApiRig.start({ networks: "simple", auth: "noauth2" });
  });
  afterEach(() => rig.close());
  const url = "/network/v2.0/security-groups";

  test("makes security groups and rules as Neutron does", async () => {
    const made = await rig.post(url, { security_group: { name: "web" } }, ANN);
    expect(made.statusCode).toBe(201);
    const { id } = made.json().security_group;
    const rule = {
      security_group_id: id,
      direction: "ingress",
      protocol: "tcp",
      port_range_min: 22,
      port_range_max: 22,
    };
    const added = await rig.post("/network/v2.0/security-group-rules", { security_group_rule: rule }, ANN);
    expect([added.statusCode, added.json().security_group_rule]).toMatchObject([201, { ...rule, ethertype: "IPv4" }]);
    expect((await rig.post("/network/v2.0/security-group-rules", { security_group_rule: rule }, ANN)).statusCode).toBe(
      409,
    );
    const listed = (await rig.get(`/network/v2.0/security-group-rules?security_group_id=${id}`, ANN)).json();
    expect(listed.security_group_rules).toHaveLength(3);
    const bad = { ...rule, remote_ip_prefix: "2001:db8::/32", ethertype: "IPv4" };
    expect((await rig.post("/network/v2.0/security-group-rules", { security_group_rule: bad }, ANN)).statusCode).toBe(
      400,
    );
    const values = { security_group: { description: "sites" } };
    expect((await rig.put(`${url}/${id}`, values, ANN)).json().security_group).toMatchObject({
      name: "web",
      description: "sites",
    });
    const ruleId = added.json().security_group_rule.id;
    expect((await rig.delete(`/network/v2.0/security-group-rules/${ruleId}`, ANN)).statusCode).toBe(204);
    expect((await rig.delete(`${url}/${id}`, as("bob:two"))).statusCode).toBe(404);
    expect((await rig.delete(`${url}/${id}`, ANN)).statusCode).toBe(204);
    const [group] = (await rig.get(`${url}?name=default`, ANN)).json().security_groups;
    expect((await rig.delete(`${url}/${group.id}`, ANN)).statusCode).toBe(409);
  });
});
