import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import { computeCall } from "./compute-call.ts";
import { type HeatResource, HeatStack } from "./heat-stack.ts";
import { type HeatChoices, heatTemplate } from "./heat-template.ts";
import type { RealCloud } from "./real-cloud.ts";
import type { TitledStep } from "./run-titled-steps.ts";

/** What the session's stacks need and what they change, and a way to look at the servers. */
export interface HeatWorld {
  readonly cloud: RealCloud;
  /** Heat's, with the project. */
  readonly heatUrl: string;
  readonly images: readonly string[];
  readonly project: string;
  readonly host: string;
}

/** The steps of a session with one stack of all kinds of resources. Each needs those before it. */
export function heatSession({ cloud, heatUrl, images, project, host }: HeatWorld): readonly TitledStep[] {
  const stack = new HeatStack(cloud, heatUrl, "berth");
  const [image = "", otherImage = ""] = images;
  let choices: HeatChoices = {
    ...{ image, flavor: "small", name: "heat-first", note: "one", tag: "blue", hasMore: false, many: 3 },
  };
  let ids: Readonly<Record<string, string>> = {};
  let before: readonly string[] = [];

  const compute = async (path: string) => computeCall(cloud, "GET", path);
  const server = async (name: string) => (await compute(`/servers/${ids[name]}`)).server;
  /** Updates the stack and expects that no resource but these is another one afterwards. */
  async function update(changes: Partial<HeatChoices>, replaced: readonly string[] = []): Promise<void> {
    choices = { ...choices, ...changes };
    const resources = await stack.update(heatTemplate(choices, { host, project }));
    expectAllComplete(resources);
    const after = idsOf(resources);
    const changed = Object.keys(ids).filter((name) => ids[name] !== after[name]);
    expect(changed.toSorted()).toEqual(replaced.toSorted());
    ids = after;
  }

  return [
    {
      title: "creates a stack with each kind of resource",
      async run() {
        before = await contentOf(cloud, project);
        const resources = await stack.create(heatTemplate(choices, { host, project }));
        expectAllComplete(resources);
        ids = idsOf(resources);
        expect(await server("first")).toMatchObject({
          ...{ status: "ACTIVE", name: "heat-first", metadata: { note: "one" }, tags: ["heat", "blue"] },
          ...{ key_name: "heat-key", image: { id: image }, "os-extended-volumes:volumes_attached": [{ id: ids.data }] },
        });
        expect(await stack.outputs()).toMatchObject({
          addresses: { "heat-net": [{ addr: expect.stringMatching(/^10\.77\.0\./), port: ids.port }] },
          key: expect.stringContaining("PRIVATE KEY"),
          shown: { id: ids.first, status: "ACTIVE" },
        });
        const { server_group: group } = await compute(`/os-server-groups/${ids.group}`);
        expect(group.members.toSorted()).toEqual([ids.first, ids.second].toSorted());
        expect((await compute(`/os-quota-sets/${project}`)).quota_set).toMatchObject({
          instances: 31,
          metadata_items: 42,
        });
      },
    },
    {
      title: "changes nothing with the same update again",
      async run() {
        // Heat marks the group of many as updated all the same.
        const before = await compute(`/servers/${ids.first}/os-instance-actions`);
        await update({});
        expect(await compute(`/servers/${ids.first}/os-instance-actions`)).toEqual(before);
      },
    },
    {
      title: "changes metadata and tags in place",
      async run() {
        await update({ note: "two", tag: "red" });
        expect(await server("first")).toMatchObject({ metadata: { note: "two" }, tags: ["heat", "red"] });
      },
    },
    {
      title: "changes a server's name in place",
      async run() {
        await update({ name: "heat-other" });
        expect(await server("first")).toMatchObject({ name: "heat-other" });
      },
    },
    {
      title: "resizes a server in place, with its volume and its port",
      async run() {
        await update({ flavor: "large" });
        expect(await server("first")).toMatchObject({ status: "ACTIVE", flavor: { vcpus: 2, ram: 256 } });
      },
    },
    {
      title: "attaches a port to a server and detaches it",
      async run() {
        await update({ hasMore: true });
        expect(Object.keys((await server("from_volume")).addresses).toSorted()).toEqual(["heat-net", "heat-other-net"]);
        await update({ hasMore: false });
        expect(Object.keys((await server("from_volume")).addresses)).toEqual(["heat-net"]);
      },
    },
    {
      title: "suspends, resumes and checks the stack",
      async run() {
        expectAllComplete(await stack.act("suspend"), "SUSPEND_COMPLETE");
        expect(await server("first")).toMatchObject({ status: "SUSPENDED" });
        expectAllComplete(await stack.act("resume"), "RESUME_COMPLETE");
        expect(await server("first")).toMatchObject({ status: "ACTIVE" });
        await stack.act("check");
      },
    },
    {
      title: "rebuilds one server from another image and replaces another one, and makes fewer of many",
      async run() {
        await update({ image: otherImage, many: 2 }, ["second", "from_image", "disk", "from_volume", "2"]);
        expect(await server("first")).toMatchObject({ status: "ACTIVE", image: { id: otherImage } });
        expect(await server("second")).toMatchObject({ status: "ACTIVE", image: { id: otherImage } });
      },
    },
    {
      title: "refuses what is there already in another stack, which then goes without a trace",
      async run() {
        const other = new HeatStack(cloud, heatUrl, "berth-other");
        const twice = { type: "OS::Nova::KeyPair", properties: { name: "heat-key" } };
        const template = { heat_template_version: "2021-04-16", resources: { twice } };
        await expect(other.create(template)).rejects.toThrow(/already exists/);
        await other.delete();
        expect((await compute("/os-keypairs/heat-key")).keypair).toMatchObject({ name: "heat-key" });
      },
    },
    {
      title: "deletes the stack, of which nothing is left",
      async run() {
        await stack.delete();
        // A deleted server's port may outlive it for a moment.
        const isAsBefore = async () => isDeepStrictEqual(await contentOf(cloud, project), before);
        const patience = { everyMs: 1_000, withinMs: 600_000 };
        await eventually("nothing is left", isAsBefore, patience).catch(() => {});
        expect(await contentOf(cloud, project)).toEqual(before);
        await eventually("the audit finds nothing", async () => (await cloud.audit()).length === 0, patience);
      },
    },
  ];
}

const idsOf = (resources: readonly HeatResource[]): Readonly<Record<string, string>> =>
  Object.fromEntries(resources.map((one) => [one.resource_name, one.physical_resource_id]));

function expectAllComplete(resources: readonly HeatResource[], status: string | null = null): void {
  expect(resources.length).toBeGreaterThan(0);
  const isComplete = ({ resource_status: is }: HeatResource) => is.endsWith("_COMPLETE") && (status ?? is) === is;
  expect(resources.filter((one) => !isComplete(one))).toEqual([]);
}

/** The ids of everything of the kinds in a stack that the services have, and the quota. */
async function contentOf(cloud: RealCloud, project: string): Promise<readonly string[]> {
  const { url, networkUrl, volumeUrl, call } = cloud;
  const { projects } = await call("GET", `${cloud.keystone.url}/projects?name=admin`);
  const lists: readonly (readonly [string, string])[] = [
    [`${url}/v2.1/servers?all_tenants=1`, "servers"],
    [`${url}/v2.1/os-keypairs`, "keypairs"],
    [`${url}/v2.1/os-server-groups`, "server_groups"],
    [`${url}/v2.1/os-aggregates`, "aggregates"],
    [`${url}/v2.1/flavors`, "flavors"],
    [`${networkUrl}/v2.0/ports`, "ports"],
    [`${networkUrl}/v2.0/networks`, "networks"],
    [`${volumeUrl}/${projects[0].id}/volumes`, "volumes"],
  ];
  const found: string[] = [];
  for (const [address, key] of lists)
    for (const one of (await call("GET", address))[key]) found.push(`${key}: ${one.id ?? one.keypair.name}`);
  const { quota_set: quota } = await computeCall(cloud, "GET", `/os-quota-sets/${project}`);
  return [...found.toSorted(), `quota of instances: ${quota.instances}`];
}
