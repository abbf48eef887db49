import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NeighbourClient } from "../../adapters/openstack/neighbour-client.ts";
import { NEUTRON, NeutronClient } from "../../adapters/openstack/neutron-client.ts";
import { systemClock } from "../../runtime/clock.ts";
import { PortBinder, type PortStep } from "../../services/conductor/port-binder.ts";
import { serverSpec } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { withServiceLogin } from "../rigs/with-service-login.ts";
import { hasNeutron, type RealNeutron, startRealNeutron } from "./real-neutron.ts";

const OWN = { callerToken: null, requestId: null };

// Needs Debian's package neutron-server: `npm run test:openstack` installs it.
describe.runIf(hasNeutron)("a real Neutron during a live migration", () => {
  /** What Neutron has reported to the Compute API. */
  const events: Record<string, string>[] = [];
  let compute: Server;
  let neutron: RealNeutron;
  let client: NeighbourClient;
  let networking: NeutronClient;
  let network = "";

  beforeAll(async () => {
    compute = createServer(async (request, response) => {
      const told = (await json(request)) as { events: Record<string, string>[] };
      events.push(...told.events);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ events: told.events.map((event) => ({ ...event, code: 200 })) }));
    });
    await once(compute.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(compute.address() as AddressInfo).port}/v2.1`;
    neutron = await startRealNeutron("", null, url);
    client = withServiceLogin({ ...NEUTRON, url: neutron.url, timeoutMs: 60_000, triesMax: 1 });
    networking = new NeutronClient(client);
    const made = await neutron.call("POST", "networks", { network: { name: "own", project_id: "one" } });
    network = made.network?.id ?? "";
    const subnet = { network_id: network, cidr: "10.1.0.0/28", ip_version: 4, project_id: "one", enable_dhcp: false };
    await neutron.call("POST", "subnets", { subnet });
  }, 900_000);
  afterAll(async () => {
    await client?.close();
    await neutron?.stop();
    compute?.closeAllConnections();
    compute?.close();
  });

  /** A port that is bound to its server's source, and what a conductor does with it. */
  async function portAtSource() {
    const serverUuid = randomUUID();
    const wanted = { projectId: "one", networkId: network, serverUuid, deviceOwner: "compute:nova", host: "source" };
    const made = await networking.createPorts([{ ...wanted, address: null, securityGroups: null }], OWN);
    if (made.kind !== "created") throw new Error(made.kind);
    const { id: portId, macAddress } = made.ports[0]!;
    const own = { portId, networkId: network, tag: "", networkName: "own", addresses: [], floatingAddresses: [] };
    const spec = { ...serverSpec(1, { ports: [{ ...own, slot: 0, macAddress }] }), uuid: serverUuid };
    const store = { holdsTask: async () => true, claimed: async () => [null] };
    const binder = new PortBinder({ networking, store, clock: systemClock }, { portBindTimeoutMs: 60_000 });
    const need = { isWanted: () => true, tenure: async () => true };
    const carryOut = async (step: PortStep, host: string) =>
      expect((await binder.bind(spec, { host, attemptId: "t/0" }, need, { step }))?.kind).toBe("bound");
    const port = async () => (await networking.ports({ id: portId }, OWN))[0];
    return { serverUuid, portId, carryOut, port };
  }

  test("reports a port that is connected at the destination only if Berth has told it of the move, and shows that nowhere", async () => {
    const { serverUuid, portId, carryOut, port } = await portAtSource();
    const connect = (host: string) => neutron.call("POST", `agents-of-tests/${host}/${portId}`);
    const plugged = () => events.filter(({ name, tag }) => name === "network-vif-plugged" && tag === portId);

    await neutron.call("POST", `ports/${portId}/bindings`, { binding: { host: "destination" } });
    await expect(connect("destination")).rejects.toThrow("409");
    await connect("source");
    await eventually("the port to be active", async () => (await port())?.status === "ACTIVE");
    // Neutron sends nothing of a port that is already connected, so the events of the source are those that come until then.
    await eventually("the event of the source", () => plugged().length > 0);
    const before = plugged().length;
    await carryOut("prepare", "destination");
    // Neutron binds the port to its source again, since its profile has changed, and reports that, as though the destination were connected.
    await eventually("the event of the profile", () => plugged().length > before);
    expect(plugged()).toHaveLength(before + 1);
    await connect("destination");
    await eventually("the event of the destination", () => plugged().length > before + 1);
    const event = { name: "network-vif-plugged", server_uuid: serverUuid, tag: portId, status: "completed" };
    expect(plugged().slice(before)).toEqual([event, event]);
    expect(await port()).toMatchObject({ host: "source", profile: { migrating_to: "destination" } });

    await carryOut("bind", "destination");
    await carryOut("leave", "destination");
    expect(await port()).toMatchObject({ host: "destination", vifType: "ovs", profile: {} });
    await expect(connect("source")).rejects.toThrow("409");
  });

  test("knows of no move when the server stays at its source", async () => {
    const { portId, carryOut, port } = await portAtSource();
    await carryOut("prepare", "first");
    await carryOut("prepare", "second");
    await carryOut("return", "source");
    expect(await port()).toMatchObject({ host: "source", vifType: "ovs", profile: {} });
    expect(await networking.bindings(portId)).toHaveLength(1);
  });
});
