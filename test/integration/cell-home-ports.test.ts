import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import { BINDING_FAILED, type NeutronPort } from "../../core/stores/networking.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../contract/networking.contract.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
let neutron: MemoryNetworking;
let agents: AgentProcess[];
beforeEach(async () => {
  cell = await new SmallCell().open();
  neutron = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(neutron);
  cell.networking = neutron;
});
afterEach(() => cell.close());

/** Server 1 runs on host 0 with a port. */
async function start(settings: Partial<ConductorSettings> = {}): Promise<void> {
  await cell.startConductor(1, { unseenMs: 200, ...settings });
  agents = [];
  for (const host of [0, 1, 2]) agents.push(await cell.startAgent({ id: `agent-${host}`, hosts: [host], vcpus: 4 }));
  await cell.hostsUp(3);
  const { id, macAddress } = neutron.putPort({ projectId: "one", networkId: OWN_NETWORK, deviceId: serverId(1) });
  const named = { portId: id, networkId: OWN_NETWORK, tag: "", networkName: "own", slot: 0, macAddress };
  await cell.boot(1, [0], { ports: [{ ...named, addresses: [], floatingAddresses: [] }] });
  await cell.become(1, "ACTIVE");
  await runs(0);
}
const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const port = (): NeutronPort => neutron.all()[0]!;
const spoil = (values: Partial<NeutronPort>) =>
  neutron.putPort({ ...port(), ...values, revision: port().revision + 1 });
const boundTo = (host: string) =>
  eventually(`the port to be bound to ${host}`, () => port().host === host && port().vifType === "ovs");

/** A cold migration ends without its destination, which loses its network before Neutron has bound the port to it. */
async function moveEndsWithoutHost(): Promise<void> {
  let isAsked = false;
  neutron.fate = (method) => {
    isAsked ||= method === "updatePort";
    return method === "updatePort" ? "silent" : "answered";
  };
  await cell.operate({ server: 1, kind: "migrate", hosts: [1] });
  await eventually("Neutron to be asked", () => isAsked);
  agents[1]?.cutOff();
  await cell.become(1, "VERIFY_RESIZE");
  await cell.rest(1);
  expect([cell.runsOn(1), port().host]).toEqual([[], "host-0"]);
}

describe("the ports of a guest that a comparison starts, since the move to its host ended while the host was away", () => {
  test("are bound to the host before the guest runs there", async () => {
    await start();
    await moveEndsWithoutHost();
    const ran: string[][] = [];
    neutron.fate = (method) => {
      if (method === "updatePort") ran.push(cell.runsOn(1));
      return "answered";
    };
    agents[1]?.reconnect();
    await runs(1);
    expect(port()).toMatchObject({ host: "host-1", vifType: "ovs" });
    expect(ran).toEqual([[]]);
  });

  test("do not hold up the guest while Neutron is silent, and are bound when it answers again", async () => {
    await start();
    await moveEndsWithoutHost();
    neutron.fate = () => "silent";
    agents[1]?.reconnect();
    await runs(1);
    expect(port().host).toBe("host-0");
    neutron.fate = () => "answered";
    await boundTo("host-1");
  });
});

describe("the ports of a server at rest", () => {
  const WRONG: readonly Partial<NeutronPort>[] = [
    { vifType: BINDING_FAILED },
    { vifType: "unbound" },
    { host: "", vifType: "unbound" },
    { host: "host-2" },
  ];

  test.each(WRONG)("are bound to its host by a comparison when they are %o", async (wrong) => {
    await start();
    spoil(wrong);
    await boundTo("host-0");
    expect(cell.runsOn(1)).toEqual(["host-0"]);
  });

  test("are bound by a comparison as soon as the operator has repaired Neutron's agent on the host", async () => {
    await start();
    neutron.hostsWithoutDriver.add("host-0");
    let asked = 0;
    neutron.fate = (method) => {
      asked += method === "updatePort" ? 1 : 0;
      return "answered";
    };
    spoil({ vifType: BINDING_FAILED });
    await eventually("two vain attempts", () => asked >= 2);
    expect(port()).toMatchObject({ host: "host-0", vifType: BINDING_FAILED });
    neutron.hostsWithoutDriver.clear();
    await boundTo("host-0");
  });

  test("lose a binding to another host that was the active one", async () => {
    await start();
    const { id, vnicType, profile } = port();
    await neutron.createBinding(id, { host: "host-2", vnicType, profile });
    await neutron.activateBinding(id, "host-2");
    await boundTo("host-0");
    await eventually("one binding", async () => (await neutron.bindings(id))?.length === 1);
  });

  test.each(WRONG.flatMap((wrong) => (["hard-reboot", "start"] as const).map((kind) => [kind, wrong] as const)))(
    "are bound to its host by a %s, without a comparison, when they are %o",
    async (kind, wrong) => {
      await start({ auditHostsPerSecond: 0 });
      if (kind === "start") {
        await cell.operate({ server: 1, kind: "stop" });
        await cell.become(1, "SHUTOFF");
        await cell.rest(1);
      }
      spoil(wrong);
      await cell.operate({ server: 1, kind });
      await cell.rest(1);
      await runs(0);
      expect(port()).toMatchObject({ host: "host-0", vifType: "ovs" });
    },
  );
});
