import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
  await rig.store.createFlavor({
    ...{ id: "2", name: "m1.small", vcpus: 1, memoryMib: 1_024, diskGib: 1, ephemeralGib: 0, swapMib: 0 },
    ...{ extraSpecs: {}, rxtxFactor: 1, isPublic: true, description: null },
  });
});
afterEach(() => rig.close());

const ADMIN = { "x-auth-token": "admin:p", "openstack-api-version": "compute 2.90" };

test("a resize changes what becomes of the partitions of a server's disk, and refuses other words", async () => {
  const id = await rig.bootActive("north", 0);
  const resize = async (value: string) => {
    const body = { resize: { flavorRef: "2", "OS-DCF:diskConfig": value } };
    return (await rig.post(`/v2.1/servers/${id}/action`, body, ADMIN)).statusCode;
  };
  const shown = async () => (await rig.get(`/v2.1/servers/${id}`, ADMIN)).json().server["OS-DCF:diskConfig"];
  expect(await resize("OTHER")).toBe(400);
  expect(await shown()).toBe("AUTO");
  expect(await resize("MANUAL")).toBe(202);
  expect(await shown()).toBe("MANUAL");
});
