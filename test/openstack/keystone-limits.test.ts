import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeystoneLimits } from "../../adapters/openstack/keystone-limits.ts";
import { openNeighbours } from "../../adapters/openstack/open-neighbours.ts";
import { limitSourceContract } from "../contract/limit-source.contract.ts";
import { hasKeystone, type RealKeystone, SERVICE_PASSWORD, startRealKeystone } from "./real-keystone.ts";

type Row = Readonly<Record<string, unknown>>;

// Needs Debian's package keystone: `npm run test:openstack` installs it.
describe.runIf(hasKeystone)("the unified limits of a real Keystone", () => {
  let keystone: RealKeystone;
  let service: string;
  const projects: string[] = [];

  const rows = async (path: string, list: string) =>
    ((await keystone.call("GET", path))[list] ?? []) as unknown as Row[];
  const open = () => {
    const neighbours = openNeighbours(
      {
        ...{ keystoneUrl: keystone.url, keystoneUser: "placement", keystonePassword: SERVICE_PASSWORD },
        ...{ keystoneProject: "service", keystoneUserDomain: "Default", keystoneProjectDomain: "Default" },
        ...{ keystoneApplicationCredentialId: null, keystoneApplicationCredentialSecret: null },
        ...{ openstackRegion: null, openstackInterface: "public", openstackTimeout: 20_000 },
      },
      { system: true },
    );
    const client = neighbours.client({ service: "Keystone", types: ["identity"], url: neighbours.keystoneUrl });
    return { source: new KeystoneLimits(client, { region: null }), close: () => neighbours.close() };
  };
  /** Sets the limit of a project, or (null) the registered one, also if there is one already. */
  const set = async (projectId: string | null, resource_name: string, limit: number) => {
    const [path, list, amount] =
      projectId === null
        ? (["registered_limits", "registered_limits", "default_limit"] as const)
        : (["limits", "limits", "resource_limit"] as const);
    const token = await keystone.issue({ system: { all: true } });
    const headers = { "x-auth-token": token, "content-type": "application/json" };
    const found = await fetch(`${keystone.url}/${path}?service_id=${service}`, { headers });
    const known = ((await found.json()) as Record<string, Row[]>)[list]?.find(
      (row) => row.resource_name === resource_name && (projectId === null || row.project_id === projectId),
    );
    const row = {
      ...{ service_id: service, resource_name, [amount]: limit },
      ...(projectId !== null && { project_id: projectId }),
    };
    const answer = await fetch(`${keystone.url}/${path}${known === undefined ? "" : `/${known.id}`}`, {
      ...{ method: known === undefined ? "POST" : "PATCH", headers },
      body: JSON.stringify(known === undefined ? { [list]: [row] } : { [list.slice(0, -1)]: { [amount]: limit } }),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  };
  const clear = async () => {
    const token = await keystone.issue({ system: { all: true } });
    const headers = { "x-auth-token": token };
    for (const path of ["limits", "registered_limits"]) {
      const found = (await (await fetch(`${keystone.url}/${path}`, { headers })).json()) as Record<string, Row[]>;
      for (const { id } of found[path] ?? [])
        await fetch(`${keystone.url}/${path}/${String(id)}`, { method: "DELETE", headers });
    }
  };

  beforeAll(async () => {
    keystone = await startRealKeystone();
    service = String(
      (await keystone.call("POST", "/services", { service: { type: "compute", name: "nova" } })).service?.id,
    );
    for (const name of ["first", "second"])
      projects.push(String((await keystone.call("POST", "/projects", { project: { name } })).project?.id));
    const [reader] = await rows("/roles?name=reader", "roles");
    await keystone.call("PUT", `/system/users/${keystone.serviceUserId}/roles/${String(reader?.id)}`);
  }, 900_000);
  afterAll(() => keystone?.stop());

  limitSourceContract("a real Keystone", async () => {
    await clear();
    const { source, close } = open();
    return { source, projects: [projects[0]!, projects[1]!], set, close };
  });

  test("cannot be read by a user without a role on the system", async () => {
    const [reader] = await rows("/roles?name=reader", "roles");
    const path = `/system/users/${keystone.serviceUserId}/roles/${String(reader?.id)}`;
    await keystone.call("DELETE", path);
    const { source, close } = open();
    try {
      await expect(source.registered()).rejects.toThrow();
    } finally {
      await close();
      await keystone.call("PUT", path);
    }
  });
});
