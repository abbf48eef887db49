import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { HostDevice } from "../../core/pinning/host-device.ts";
import type { NeutronPort } from "../../core/stores/networking.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import type { GuestName } from "../../services/compute-agent/journal.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../contract/networking.contract.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
let neutron: MemoryNetworking;
beforeEach(async () => {
  cell = await new SmallCell().open();
  neutron = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(neutron);
  cell.networking = neutron;
  starts = [];
  failingStarts.clear();
});
afterEach(() => cell.close());

/** For each start of a guest its host, and the function that Neutron knows at that moment. */
let starts: string[];
/** Hosts that cannot start guests. */
const failingStarts = new Set<string>();

const UNPINNED = { vcpus: [], held: [], emulator: [], memory: [], isBound: false, pageKib: null };
const slotOf = (host: string) => `0000:3b:02.${host.slice("host-".length)}`;
const known = () => neutron.all()[0]?.profile.pci_slot ?? "nothing";

/**
 * A driver whose guests have a virtual function of their host for the port. Like the driver of virtual machines, it gives the function the port's MAC address
 * when it prepares the guest of a new server, and when it starts any other one, whose port the server's present guest has until then.
 */
const withFunctions =
  (portId: string, mac: string) =>
  (driver: FakeDriver): Driver => {
    const port = { portId, mac, slot: 1, connection: null, vendorInfo: "8086:154c", physicalNetwork: "physnet1" };
    const deviceOf = ({ host }: GuestName): HostDevice => ({ kind: "pci", address: slotOf(host), port });
    return new Proxy(driver, {
      get: (target, name) => {
        if (name === "pinningOf") return (guest: GuestName) => ({ ...UNPINNED, devices: [deviceOf(guest)] });
        const setMac = ({ host }: GuestName, to: string | null) => neutron.setFunctionMac(host, slotOf(host), to);
        if (name === "prepare")
          return (...args: Parameters<Driver["prepare"]>) => {
            if (args[0].movedFrom === null) setMac(args[0], mac);
            return target.prepare(...args);
          };
        if (name === "handOff")
          return async (...args: Parameters<Driver["handOff"]>) => {
            await target.handOff(...args);
            setMac(args[0], null);
          };
        if (name === "start")
          return async (...args: Parameters<Driver["start"]>) => {
            starts.push(`${args[0].host} ${known()}`);
            setMac(args[0], mac);
            if (failingStarts.has(args[0].host)) throw new Error("the firmware is broken");
            return target.start(...args);
          };
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };

/** Starts a cell of three hosts, and boots a server with a direct port, and perhaps a further port, on the first one. */
async function boot(further: NeutronPort | null = null): Promise<void> {
  const { id: portId, macAddress } = neutron.putPort({
    ...{ projectId: "one", networkId: OWN_NETWORK, deviceId: serverId(1) },
    ...{ vnicType: "direct", profile: { trusted: "true" } },
  });
  for (const host of [0, 1, 2])
    await cell.startAgent({
      ...{ id: `agent-${host}`, hosts: [host], vcpus: 4, conductors: [1, 2] },
      before: withFunctions(portId, macAddress),
    });
  await cell.hostsUp(3);
  const own = { networkId: OWN_NETWORK, tag: "", networkName: "own", addresses: [], floatingAddresses: [] };
  const ports = [{ ...own, portId, slot: 0, macAddress }];
  if (further !== null) ports.push({ ...own, portId: further.id, slot: 1, macAddress: further.macAddress });
  const group = { resources: { SRIOV_NET_VF: 1 }, requiredTraits: [], groupId: "" };
  const request = { ...group, portId, suffix: "_PORT0", provider: "" };
  await cell.boot(1, [0, 1, 2], { ports, portRequests: [request] });
}
const runs = (host: number) => eventually(`it to run on host-${host}`, () => cell.runsOn(1).join() === `host-${host}`);
const migrate = (...hosts: number[]) => cell.operate({ server: 1, kind: "migrate", hosts });

test("Neutron learns which function connects a direct port before the guest starts, and keeps what users have written", async () => {
  await cell.startConductor(1);
  await boot();
  await cell.become(1, "ACTIVE");
  await runs(0);
  expect(starts).toEqual([`host-0 ${slotOf("host-0")}`]);
  expect(neutron.all()[0]).toMatchObject({
    ...{ host: "host-0", vifType: "hw_veb" },
    profile: {
      trusted: "true",
      ...{ pci_slot: slotOf("host-0"), pci_vendor_info: "8086:154c", physical_network: "physnet1" },
    },
  });
});

test("the build goes to the alternate when Neutron does not take the function", async () => {
  await cell.startConductor(1);
  const update = neutron.updatePort.bind(neutron);
  neutron.updatePort = async (id, change, ...more) =>
    change.profile?.pci_slot === slotOf("host-0")
      ? { kind: "refused", why: "not that one" }
      : update(id, change, ...more);
  await boot();
  await cell.become(1, "ACTIVE");
  await runs(1);
  expect(starts).toEqual([`host-1 ${slotOf("host-1")}`]);
  await eventually("the end of the guest on host-0", () => cell.existsOn(1).join() === "host-1");
});

test("a server that is moved has the function of its destination in Neutron before it starts there", async () => {
  await cell.startConductor(1);
  await boot();
  await cell.become(1, "ACTIVE");
  await runs(0);
  await migrate(1);
  expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1" });
  await runs(1);
  expect(starts.at(-1)).toBe(`host-1 ${slotOf("host-1")}`);
});

test.each(["migrate", "rebuild", "evacuate", "unshelve"] as const)(
  "a %s does not wait for Neutron to connect a direct port, whose function gets its MAC address at the start",
  async (kind) => {
    await cell.startConductor(1, { vifPluggingTimeoutMs: 60_000 });
    await boot();
    await cell.become(1, "ACTIVE");
    await runs(0);
    expect(neutron.all()[0]?.status).toBe("ACTIVE");
    if (kind === "unshelve") {
      await cell.operate({ server: 1, kind: "shelve-offload" });
      await cell.become(1, "SHELVED_OFFLOADED");
    }
    if (kind === "evacuate") await cell.store.hostAdmin().setForcedDown("host-0", true);
    const host = kind === "rebuild" ? 0 : 1;
    await cell.operate({ server: 1, kind, hosts: [host], unseenMs: 100 });
    expect(await cell.rest(1)).toMatchObject({
      status: kind === "migrate" ? "VERIFY_RESIZE" : "ACTIVE",
      host: `host-${host}`,
    });
    await eventually("the port to be connected", () => neutron.all()[0]?.status === "ACTIVE");
  },
);

test("a move waits for the server's other ports", async () => {
  await cell.startConductor(1, { vifPluggingTimeoutMs: 50 });
  const ordinary = { projectId: "one", networkId: OWN_NETWORK, deviceId: serverId(1) };
  await boot(neutron.putPort(ordinary));
  await cell.become(1, "ACTIVE");
  await runs(0);
  neutron.statusWhenBound = "DOWN";
  await migrate(1);
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
});

test("a conductor that takes a move over before the start asks the destination for its function", async () => {
  const first = await cell.startConductor(1);
  await boot();
  await cell.become(1, "ACTIVE");
  await runs(0);
  // Neutron is silent when the first conductor is about to bind the port to the destination.
  let isReached = false;
  neutron.fate = (method) => {
    if (method !== "updatePort") return "answered";
    isReached = true;
    return "silent";
  };
  await migrate(1);
  await eventually("the binding to begin", () => isReached);
  await cell.startConductor(2);
  await first.kill();
  neutron.fate = () => "answered";
  expect(await cell.rest(1)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1" });
  await runs(1);
  expect(starts.at(-1)).toBe(`host-1 ${slotOf("host-1")}`);
});

test("a server that goes back because its destination cannot start it has the function of its source in Neutron again", async () => {
  await cell.startConductor(1);
  await boot();
  await cell.become(1, "ACTIVE");
  await runs(0);
  failingStarts.add("host-1");
  await migrate(1);
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
  await runs(0);
  expect(known()).toBe(slotOf("host-0"));
});

test("a hard reboot tells Neutron the function of a port that Neutron no longer has it for", async () => {
  await cell.startConductor(1);
  await boot();
  await cell.become(1, "ACTIVE");
  await runs(0);
  const port = neutron.all()[0];
  if (port === undefined) throw new Error("Neutron has no port");
  neutron.putPort({ ...port, profile: { trusted: "true", pci_slot: slotOf("host-2") } });
  await cell.operate({ server: 1, kind: "hard-reboot" });
  expect(await cell.rest(1)).toMatchObject({ status: "ACTIVE", host: "host-0" });
  expect(neutron.all()[0]?.profile).toMatchObject({ trusted: "true", pci_slot: slotOf("host-0") });
});
