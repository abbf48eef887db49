import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { MemoryNetworking } from "../../../../adapters/memory/memory-networking.ts";
import { OWN_NETWORK, putContractNetworks } from "../../../../test/contract/networking.contract.ts";
import { refreshPorts } from "./refresh-ports.ts";

type Known = Parameters<typeof refreshPorts>[1];

test.each([
  ["ACTIVE", true],
  ["SHELVED", true],
  // A revert would bring back the addresses of before.
  ["VERIFY_RESIZE", false],
] as const)("a server that is %s and has the addresses of Neutron is done with: %s", async (status, isDone) => {
  const networking = new MemoryNetworking({ newId: randomUUID });
  putContractNetworks(networking);
  const uuid = randomUUID();
  const { id, macAddress } = networking.putPort({
    projectId: "one",
    networkId: OWN_NETWORK,
    deviceId: uuid,
    fixedAddresses: [],
  });
  const ports = [{ portId: id, macAddress, addresses: [], floatingAddresses: [] }];
  const known = { server: { uuid, status, spec: { uuid, ports } } } as unknown as Known;
  expect(await refreshPorts({ networking, floatingIps: networking.floatingIps }, known, [])).toBe(isDone);
});
