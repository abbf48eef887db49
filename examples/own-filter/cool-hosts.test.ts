import { creates, deletes, failingBuilds, generateHosts, InProcessCloud, limit, mix, runSuite } from "berth/chaos";
import { expectSound, useCloud } from "berth/chaos/vitest";
import { beforeAll, expect, test } from "vitest";
import coolHosts from "./cool-hosts.ts";

/** Long enough for a busy machine. */
const PATIENCE_MS = 120_000;

/** The first two hosts of each cell are cool, so that a server that requires a cool one also has an alternate there. */
const CELLS = ["cell-1", "cell-2"].map((name) => ({
  name,
  hosts: generateHosts(`${name}-host`, 4).map((host, index) => ({
    ...host,
    hypervisor: { metrics: { "inlet.celsius": index < 2 ? 20 : 30 } },
  })),
}));

const cloud = useCloud(() => InProcessCloud.start({ cells: CELLS, filters: [coolHosts] }));

/** A flavor that requires hosts no warmer than this. */
async function addFlavor(id: string, celsiusMax?: number): Promise<void> {
  await call("/v2.1/flavors", { flavor: { id, name: id, vcpus: 1, ram: 512, disk: 1 } });
  if (celsiusMax === undefined) return;
  await call(`/v2.1/flavors/${id}/os-extra_specs`, { extra_specs: { inlet_celsius_max: `${celsiusMax}` } });
}

async function call(path: string, body: unknown): Promise<void> {
  const { status, json } = await cloud().call("POST", path, body);
  if (status !== 200) throw new Error(`POST ${path}: ${status} ${JSON.stringify(json)}`);
}

beforeAll(async () => {
  await addFlavor("plain");
  await addFlavor("sensitive", 24);
  await addFlavor("arctic", -40);
});

test(
  "sensitive servers run only on cool hosts, even when builds fail and go to alternates",
  async () => {
    const load = creates((n) => ({ flavor: n % 2 === 0 ? "sensitive" : "plain" }));
    const result = await runSuite({
      name: "cool-hosts",
      cloud: cloud(),
      generator: limit(80, mix([4, load], [1, deletes()])),
      clients: 8,
      nemesis: failingBuilds(0.3),
    });

    expectSound(result);
    const hosts = result.servers.flatMap(({ host, wanted }) => (wanted.flavor === "sensitive" ? (host ?? []) : []));
    expect(hosts.length).toBeGreaterThan(0);
    expect(hosts.filter((host) => !/-host-[12]$/.test(host))).toEqual([]);
  },
  PATIENCE_MS,
);

test(
  "the refusal says that no host is cool enough",
  async () => {
    const generator = limit(
      1,
      creates(() => ({ flavor: "arctic" })),
    );
    const result = await runSuite({ name: "arctic", cloud: cloud(), generator });

    expectSound(result);
    expect(result.servers[0]).toMatchObject({ state: "ERROR", fault: expect.stringContaining("is too warm") });
  },
  PATIENCE_MS,
);
