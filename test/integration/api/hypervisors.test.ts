import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { UNKNOWN_HYPERVISOR } from "../../../core/ledger/hypervisor-facts.ts";
import { hostName, providerOf } from "../../contract/cell-fixtures.ts";
import { eventually } from "../../rigs/eventually.ts";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor: number) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const ADMIN = (minor: number) => as("admin:ops", minor);
const HOSTS = "/v2.1/os-hypervisors";

let rig: ApiRig;
let server: string;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
  server = (
    await rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1" } }, { "x-auth-token": "ann:p1" })
  ).json().server.id;
  const task = await rig.dispatch(server, "north", [1]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  const hypervisor = { ...UNKNOWN_HYPERVISOR, type: "QEMU", bootedAtMs: Date.now() - 3 * 86_400_000 - 66 * 60_000 };
  await rig
    .cell("north")
    .store.hostsUp("agent-north", [{ name: hostName(0), rootProvider: providerOf(0), hypervisor }]);
});
afterAll(() => rig.close());

const status = async (url: string, headers: Record<string, string>) => (await rig.get(url, headers)).statusCode;
const namesOf = (answer: { json(): { hypervisors: readonly { hypervisor_hostname: string }[] } }) =>
  answer.json().hypervisors.map((one) => one.hypervisor_hostname);

describe("the uptime of a hypervisor", () => {
  it("has a route up to 2.87, and is in the body from 2.88 on", async () => {
    const uptime = await rig.get(`${HOSTS}/${providerOf(0)}/uptime`, ADMIN(87));
    expect(uptime.json().hypervisor).toEqual({
      id: providerOf(0),
      hypervisor_hostname: hostName(0),
      state: "up",
      status: "enabled",
      uptime: expect.stringMatching(/^ \d\d:\d\d:\d\d up 3 days, {2}1:06$/),
    });
    const shown = (await rig.get(`${HOSTS}/${providerOf(0)}`, ADMIN(88))).json().hypervisor;
    expect(shown.uptime).toMatch(/ up 3 days, {2}1:06$/);
    expect(await status(`${HOSTS}/${providerOf(0)}/uptime`, ADMIN(88))).toBe(404);
  });

  it("is not supported for a host whose agent does not report it, and unknown ids are refused as Nova does", async () => {
    expect((await rig.get(`${HOSTS}/${providerOf(1)}/uptime`, ADMIN(87))).json()).toEqual({
      notImplemented: { code: 501, message: "The requested functionality is not supported." },
    });
    expect((await rig.get(`${HOSTS}/${providerOf(1)}`, ADMIN(88))).json().hypervisor.uptime).toBeNull();
    expect(await status(`${HOSTS}/11111111-1111-4111-8111-111111111111/uptime`, ADMIN(87))).toBe(404);
    expect(await status(`${HOSTS}/x/uptime`, ADMIN(87))).toBe(400);
    expect(await status(`${HOSTS}/x/uptime`, ADMIN(52))).toBe(404);
    await rig.cell("south").store.expireAgents(-1);
    expect((await rig.get(`${HOSTS}/${providerOf(3)}/uptime`, ADMIN(87))).json().badRequest.message).toBe(
      `Compute service of ${hostName(3)} is unavailable at this time.`,
    );
  });
});

describe("the usage of hypervisors", () => {
  it("is read up to 2.87, and no servers are counted from 2.88 on, which do not show it", async () => {
    const counts = vi.spyOn(rig.cell("north").store, "serverCountByHost");
    try {
      for (const path of [`${HOSTS}/detail`, `${HOSTS}/${providerOf(1)}`])
        for (const minor of [88, 90]) expect((await rig.get(path, ADMIN(minor))).body).not.toContain("running_vms");
      expect(counts).not.toHaveBeenCalled();
      const detail = (await rig.get(`${HOSTS}/detail`, ADMIN(87))).json().hypervisors;
      expect(detail[1]).toMatchObject({ hypervisor_hostname: hostName(1), running_vms: 1 });
      const shown = (await rig.get(`${HOSTS}/${providerOf(1)}`, ADMIN(87))).json().hypervisor;
      expect(shown.running_vms).toBe(1);
      expect(counts).toHaveBeenCalledTimes(2);
    } finally {
      counts.mockRestore();
    }
  });
});

describe("the servers of hypervisors", () => {
  const guest = () => ({ name: `instance-${server.slice(-8)}`, uuid: server });

  it("have routes of their own up to 2.52, by a part of the name", async () => {
    const found = (await rig.get(`${HOSTS}/host-/servers`, ADMIN(52))).json().hypervisors;
    expect(found).toHaveLength(6);
    expect(found[1]).toMatchObject({ hypervisor_hostname: hostName(1), servers: [guest()] });
    expect(found[0]).not.toHaveProperty("servers");
    expect(namesOf(await rig.get(`${HOSTS}/${hostName(2)}/search`, ADMIN(52)))).toEqual([hostName(2)]);
    const unknown = await rig.get(`${HOSTS}/nope/search`, ADMIN(52));
    expect(unknown.json().itemNotFound.message).toBe("No hypervisor matching 'nope' could be found.");
    expect(await status(`${HOSTS}/nope/servers`, ADMIN(52))).toBe(404);
    for (const route of ["search", "servers"]) expect(await status(`${HOSTS}/host-/${route}`, ADMIN(53))).toBe(404);
  });

  it("are asked for by a parameter from 2.53 on, and from 2.75 on there is a list for every hypervisor", async () => {
    for (const path of [HOSTS, `${HOSTS}/detail`]) {
      const before = (await rig.get(`${path}?with_servers=true`, ADMIN(53))).json().hypervisors;
      expect([before[0].servers, before[1].servers]).toEqual([undefined, [guest()]]);
      const after = (await rig.get(`${path}?with_servers=true`, ADMIN(75))).json().hypervisors;
      expect([after[0].servers, after[1].servers]).toEqual([[], [guest()]]);
      expect((await rig.get(path, ADMIN(75))).json().hypervisors[1]).not.toHaveProperty("servers");
    }
    const one = (await rig.get(`${HOSTS}/${providerOf(1)}?with_servers=1`, ADMIN(88))).json().hypervisor;
    expect(one.servers).toEqual([guest()]);
    expect(await status(`${HOSTS}?with_servers=maybe`, ADMIN(53))).toBe(400);
    expect((await rig.get(`${HOSTS}?with_servers=true`, ADMIN(52))).json().hypervisors[1]).not.toHaveProperty(
      "servers",
    );
  });

  it("are not answered as an empty list while their cell does not answer", async () => {
    const north = rig.cell("north");
    const { residents } = north.store;
    north.store.residents = () => Promise.reject(new Error("the cell breaks between the two questions"));
    try {
      expect(await status(`${HOSTS}?with_servers=true`, ADMIN(75))).toBe(503);
    } finally {
      north.store.residents = residents;
    }
    // The api asks the cell nothing for a moment.
    await eventually("the cell to be asked again", async () => namesOf(await rig.get(HOSTS, ADMIN(75))).length === 6);
  });
});

describe("the list of hypervisors", () => {
  it("has pages from 2.33 on, without a pattern", async () => {
    expect(namesOf(await rig.get(`${HOSTS}?limit=2`, ADMIN(32)))).toHaveLength(6);
    for (const path of [HOSTS, `${HOSTS}/detail`]) {
      const numbered = await rig.get(`${path}?limit=4`, ADMIN(33));
      expect(numbered.json().hypervisors_links[0].href).toMatch(/\?limit=4&marker=\d+$/);
      const first = await rig.get(`${path}?limit=4`, ADMIN(53));
      const [{ href }] = first.json().hypervisors_links;
      expect(href).toBe(`http://localhost:80${path}?limit=4&marker=${providerOf(3)}`);
      expect(namesOf(await rig.get(href.slice("http://localhost:80".length), ADMIN(53)))).toEqual([
        hostName(4),
        hostName(5),
      ]);
    }
    expect((await rig.get(`${HOSTS}?marker=5`, ADMIN(33))).json().badRequest.message).toBe("marker [5] not found");
    const both = await rig.get(`${HOSTS}?hypervisor_hostname_pattern=host&limit=1`, ADMIN(53));
    expect(both.json().badRequest.message).toBe(
      "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported.",
    );
  });

  it("and every other route of hypervisors is for admins, by its own policy", async () => {
    const id = providerOf(0);
    for (const [path, minor, rule] of [
      ["", 53, "list"],
      ["/detail", 53, "list-detail"],
      ["/statistics", 53, "statistics"],
      [`/${id}`, 53, "show"],
      [`/${id}/uptime`, 53, "uptime"],
      ["/host/search", 52, "search"],
      ["/host/servers", 52, "servers"],
    ] as const) {
      const answer = await rig.get(HOSTS + path, as("ann:p1", minor));
      expect(answer.json().forbidden.message).toBe(
        `Policy doesn't allow os_compute_api:os-hypervisors:${rule} to be performed.`,
      );
    }
  });
});

it("does not find an aggregate with a negative id, and refuses an id that is not a number", async () => {
  const ofAggregate = (id: string) => status(`/v2.1/os-aggregates/${id}`, ADMIN(96));
  expect([await ofAggregate("-1"), await ofAggregate("x")]).toEqual([404, 400]);
});
