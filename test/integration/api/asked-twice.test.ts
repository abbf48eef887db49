import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { hostName } from "../../contract/cell-fixtures.ts";
import { ApiRig } from "./api-rig.ts";

// What Terraform, Heat and scripts that are run again see. Nova creates what has no unique name again, and refuses what has one. It knows no key by which
// a repeated request is recognised.
let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({
    ...{ auth: "noauth2", networks: "simple", volumes: "simple" },
    quotas: QUOTA_DEFAULTS.unlimited,
  });
});
afterEach(() => rig.close());

const ADMIN = "admin:p";
const as = (who: string, minor = 96) => ({ "x-auth-token": who, "openstack-api-version": `compute 2.${minor}` });
type Method = "GET" | "POST" | "PUT" | "DELETE";
async function call(method: Method, url: string, body?: unknown, headers: Record<string, string> = as(ADMIN)) {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const { statusCode: status, body: text } = await rig.call({
    method,
    url,
    headers: { ...headers, ...type },
    ...payload,
  });
  return { status, json: text === "" ? null : JSON.parse(text) };
}
/** Makes the same call so many times, one after the other. */
async function asked(times: number, ...[method, url, body, headers]: Parameters<typeof call>) {
  const answers: Awaited<ReturnType<typeof call>>[] = [];
  for (let time = 0; time < times; time += 1) answers.push(await call(method, url, body, headers));
  return answers;
}
/** The status and the message of each answer; an answer that is no refusal has none. */
const told = (
  answers: readonly { readonly status: number; readonly json: Record<string, { message?: string }> | null }[],
) => answers.map(({ status, json }) => [status, status < 400 ? "" : Object.values(json ?? {})[0]?.message]);
const NEW_SERVER = { server: { name: "web", flavorRef: "1", networks: "auto" } };
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHhLvOZ4OeDnHX6OFOHzQmfSSGMpzZPS2ZWTZlXiPDKz ann@laptop";
const KEYPAIR = { name: "laptop", type: "ssh", public_key: KEY };
const active = () => rig.bootActive("north", 0, { networks: "none" }, as(ADMIN));

describe("the same request twice", () => {
  test.each([
    ["", {}],
    [", with the same request id of the client,", { "x-openstack-request-id": `req-${randomUUID()}` }],
  ])("to create a server%s makes two servers of one name, each with an id and a port of its own", async (_, more) => {
    const answers = await asked(2, "POST", "/v2.1/servers", NEW_SERVER, { ...as(ADMIN), ...more });
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    const ids = answers.map(({ json }) => json.server.id as string);
    const listed = (await call("GET", "/v2.1/servers?name=web")).json.servers.map(({ id }: { id: string }) => id);
    expect(new Set(listed)).toEqual(new Set(ids));
    expect(listed).toHaveLength(2);
    const ports = await Promise.all(ids.map((id) => call("GET", `/network/v2.0/ports?device_id=${id}`)));
    expect(ports.map(({ json }) => json.ports.length)).toEqual([1, 1]);
  });

  test("at the same time makes two servers as well", async () => {
    const answers = await Promise.all([1, 2].map(() => call("POST", "/v2.1/servers", NEW_SERVER)));
    expect(new Set(answers.map(({ json }) => json.server.id)).size).toBe(2);
  });

  test("to create a key pair is refused, also with the same key, and the first one stays", async () => {
    const [first, ...others] = await asked(2, "POST", "/v2.1/os-keypairs", { keypair: KEYPAIR });
    const generated = { keypair: { name: "laptop", type: "ssh" } };
    others.push(await call("POST", "/v2.1/os-keypairs", generated, as(ADMIN, 91)));
    expect(first?.status).toBe(201);
    const refusal = [409, "Key pair 'laptop' already exists."];
    expect(told(others)).toEqual([refusal, refusal]);
    const { json } = await call("GET", "/v2.1/os-keypairs/laptop");
    expect(json.keypair.fingerprint).toBe(first?.json.keypair.fingerprint);
  });

  test("of another user makes another key pair", async () => {
    const answers = [
      await call("POST", "/v2.1/os-keypairs", { keypair: KEYPAIR }),
      await call("POST", "/v2.1/os-keypairs", { keypair: KEYPAIR }, as("ann:p")),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  });

  test("to create a server group makes two groups of one name", async () => {
    const server_group = { name: "pairs", policy: "anti-affinity" };
    const answers = await asked(2, "POST", "/v2.1/os-server-groups", { server_group });
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(new Set(answers.map(({ json }) => json.server_group.id)).size).toBe(2);
  });

  test("to create a flavor is refused by its id, and then by its name; without an id each is new", async () => {
    const flavor = { id: "77", name: "big", vcpus: 1, ram: 512, disk: 1 };
    const first = await call("POST", "/v2.1/flavors", { flavor });
    expect(first.status).toBe(200);
    const refused = [
      await call("POST", "/v2.1/flavors", { flavor: { ...flavor, name: "other" } }),
      await call("POST", "/v2.1/flavors", { flavor: { ...flavor, id: "78" } }),
      await call("POST", "/v2.1/flavors", { flavor: { ...flavor, id: "auto" } }),
    ];
    expect(told(refused)).toEqual([
      [409, "Flavor with ID 77 already exists."],
      [409, "Flavor with name big already exists."],
      [409, "Flavor with name big already exists."],
    ]);
  });

  test("to create an aggregate or to add a host to it is refused", async () => {
    const [made, again] = await asked(2, "POST", "/v2.1/os-aggregates", { aggregate: { name: "fast" } });
    expect(made?.status).toBe(200);
    expect(told([again!])).toEqual([[409, "Aggregate fast already exists."]]);
    const id = made?.json.aggregate.id;
    const added = await asked(2, "POST", `/v2.1/os-aggregates/${id}/action`, { add_host: { host: hostName(0) } });
    expect(told(added)).toEqual([
      [200, ""],
      [409, `Aggregate ${id} already has host ${hostName(0)}.`],
    ]);
  });

  test("to attach a volume is refused, for its own server as for others", async () => {
    const server = await active();
    const { id } = (await call("POST", "/volume/v3/volumes", { volume: { size: 1 } })).json.volume;
    const attach = { volumeAttachment: { volumeId: id } };
    const answers = await asked(2, "POST", `/v2.1/servers/${server}/os-volume_attachments`, attach);
    expect(answers[0]?.status).toBe(200);
    const refusal = [400, `Invalid volume: volume ${id} is already attached to instances: ${server}`];
    const other = await active();
    answers.push(await call("POST", `/v2.1/servers/${other}/os-volume_attachments`, attach));
    expect(told(answers.slice(1))).toEqual([refusal, refusal]);
  });

  test("to attach a port is refused, also for its own server", async () => {
    const server = await active();
    const [network] = (await call("GET", "/network/v2.0/networks")).json.networks;
    const port = (await call("POST", "/network/v2.0/ports", { port: { network_id: network.id } })).json.port;
    const attach = { interfaceAttachment: { port_id: port.id } };
    const answers = await asked(2, "POST", `/v2.1/servers/${server}/os-interface`, attach);
    expect(told(answers)).toEqual([
      [200, ""],
      [409, `Port ${port.id} is still in use.`],
    ]);
  });

  test("to delete something is answered as if it had never been there, once it is gone", async () => {
    const server = await rig.boot({ networks: "none" }, as(ADMIN));
    const [group] = await asked(1, "POST", "/v2.1/os-server-groups", {
      server_group: { name: "g", policy: "affinity" },
    });
    await call("POST", "/v2.1/os-keypairs", { keypair: KEYPAIR });
    const groupId = group?.json.server_group.id;
    const twice = async (url: string) => told(await asked(2, "DELETE", url));
    expect(await twice(`/v2.1/servers/${server}`)).toEqual([
      [204, ""],
      [404, `Instance ${server} could not be found.`],
    ]);
    expect(await twice(`/v2.1/os-server-groups/${groupId}`)).toEqual([
      [204, ""],
      [404, `Instance group ${groupId} could not be found.`],
    ]);
    expect(await twice("/v2.1/os-keypairs/laptop")).toEqual([
      [204, ""],
      [404, "Keypair laptop not found for user admin"],
    ]);
    expect(await twice("/v2.1/flavors/1")).toEqual([
      [202, ""],
      [404, "Flavor 1 could not be found."],
    ]);
  });

  test("to delete a server whose host is still at work is answered as the first time", async () => {
    const server = await active();
    expect(told(await asked(3, "DELETE", `/v2.1/servers/${server}`))).toEqual([
      [204, ""],
      [204, ""],
      [204, ""],
    ]);
    expect(rig.deleteTasks("north")).toHaveLength(1);
  });

  test("to add a tag, to lock or to write metadata changes nothing the second time", async () => {
    const server = await active();
    const statuses = async (...request: Parameters<typeof call>) =>
      (await asked(2, ...request)).map(({ status }) => status);
    expect(await statuses("PUT", `/v2.1/servers/${server}/tags/blue`)).toEqual([201, 204]);
    expect(await statuses("POST", `/v2.1/servers/${server}/action`, { lock: null })).toEqual([202, 202]);
    expect(await statuses("POST", `/v2.1/servers/${server}/action`, { unlock: null })).toEqual([202, 202]);
    expect(await statuses("POST", `/v2.1/servers/${server}/metadata`, { metadata: { a: "b" } })).toEqual([200, 200]);
    const { json } = await call("GET", `/v2.1/servers/${server}`);
    expect([json.server.tags, json.server.metadata]).toEqual([["blue"], { a: "b" }]);
  });

  test("to start a server that runs is refused", async () => {
    const server = await active();
    expect(told([await call("POST", `/v2.1/servers/${server}/action`, { "os-start": null })])).toEqual([
      [409, `Cannot 'start' instance ${server} while it is in vm_state active`],
    ]);
  });

  test("to create a rule of a security group is refused by the rule's id, and two groups may have one name", async () => {
    const security_group = { name: "web" };
    const groups = await asked(2, "POST", "/network/v2.0/security-groups", { security_group });
    expect(groups.map(({ status }) => status)).toEqual([201, 201]);
    const [first, second] = groups.map(({ json }) => json.security_group.id as string);
    expect(second).not.toBe(first);
    const rule = { direction: "ingress", ethertype: "IPv4", protocol: "tcp", port_range_min: 80, port_range_max: 80 };
    const security_group_rule = { ...rule, security_group_id: first };
    const [made, again] = await asked(2, "POST", "/network/v2.0/security-group-rules", { security_group_rule });
    expect(made?.status).toBe(201);
    expect(told([again!])).toEqual([
      [409, `Security group rule already exists. Rule id is ${made?.json.security_group_rule.id}.`],
    ]);
  });
});
