import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../../test/contract/networking.contract.ts";
import { PortBinder } from "./port-binder.ts";

let neutron: MemoryNetworking;
let holdsTask: () => Promise<boolean>;
beforeEach(() => {
  neutron = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(neutron);
  holdsTask = async () => true;
});

const hosts = () => neutron.all().map(({ host }) => host);

function bindTo(host: string, isUrgent = false) {
  const { uuid } = serverSpec(1);
  const port = neutron.all()[0] ?? neutron.putPort({ projectId: "one", networkId: OWN_NETWORK, deviceId: uuid });
  const own = {
    portId: port.id,
    networkId: OWN_NETWORK,
    tag: "",
    networkName: "own",
    addresses: [],
    floatingAddresses: [],
    slot: 0,
  };
  const server = serverSpec(1, { ports: [{ ...own, macAddress: port.macAddress }] });
  const binder = new PortBinder(
    { networking: neutron, store: { holdsTask: () => holdsTask() }, clock: new ManualClock() },
    { portBindTimeoutMs: 0 },
  );
  const tenure = { taskId: randomUUID(), serverUuid: uuid, epoch: 1 };
  return binder.bind(server, host, { isWanted: () => true, isUrgent, tenure });
}

test("a conductor whose task another one has taken does not bind a port back to an earlier host", async () => {
  expect(await bindTo("present")).toMatchObject({ kind: "bound" });
  holdsTask = async () => false;
  expect(await bindTo("earlier")).toEqual({ kind: "unwanted" });
  expect(hosts()).toEqual(["present"]);
});

test("a conductor that is cut off from its cell's database binds no port, and says why", async () => {
  holdsTask = () => Promise.reject(new Error("the connection was lost"));
  expect(await bindTo("host")).toMatchObject({
    kind: "failed",
    reason: expect.stringContaining("the connection was lost"),
  });
  expect(hosts()).toEqual([""]);
});
