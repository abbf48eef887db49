import { afterEach, expect, test } from "vitest";
import { floatingIpsContract } from "../../test/contract/floating-ips.contract.ts";
import type { FakeNeighbour } from "../../test/rigs/fake-neighbour.ts";
import { startFakeNeutron } from "../../test/rigs/fake-neutron.ts";
import { floatingIpTwin } from "../../test/rigs/floating-ip-twin.ts";
import { withServiceLogin } from "../../test/rigs/with-service-login.ts";
import type { NeighbourClient } from "./neighbour-client.ts";
import { NeighbourError } from "./neighbour-error.ts";
import { NEUTRON } from "./neutron-client.ts";
import { NeutronFloatingIps } from "./neutron-floating-ips.ts";

let neutron: FakeNeighbour | null = null;
let client: NeighbourClient | null = null;
afterEach(async () => {
  await client?.close();
  await neutron?.close();
});

floatingIpsContract("Neutron over HTTP, with one item on each page", async () => {
  const { twin, ...rig } = floatingIpTwin();
  neutron = await startFakeNeutron(twin, { pageMax: 1 });
  client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 5_000, triesMax: 2 });
  return { ...rig, floatingIps: new NeutronFloatingIps(client) };
});

const OWN = { callerToken: null, requestId: null };

test("a Neutron without routers has no floating IPs", async () => {
  const call = () => Promise.reject(new NeighbourError("not-found", "404", { service: "Neutron", status: 404 }));
  expect(await new NeutronFloatingIps({ call }).floatingIps({}, OWN)).toEqual([]);
});

test("the ports are asked for their servers if Neutron does not show them with the floating IPs", async () => {
  const asked: string[] = [];
  const call = async ({ path }: { readonly path: string }) => {
    asked.push(path);
    const body = path.startsWith("/v2.0/ports")
      ? { ports: [{ id: "p", device_id: "server" }] }
      : {
          floatingips: [
            { id: "f", port_id: "p", fixed_ip_address: "10.1.0.10" },
            { id: "g", port_id: null },
          ],
        };
    return { status: 200, headers: {}, body, characters: 0 };
  };
  const found = await new NeutronFloatingIps({ call }).floatingIps({}, OWN);
  expect(found.map(({ id, serverUuid }) => [id, serverUuid])).toEqual([
    ["f", "server"],
    ["g", null],
  ]);
  expect(asked).toEqual(["/v2.0/floatingips", "/v2.0/ports?id=p"]);
});
