import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

test("a detach against an attach of the same port to the same server: whoever attached it keeps it", async () => {
  const [server, other] = [await rig.bootActive("north", 0), await rig.bootActive("north", 1)];
  const created = await rig.post("/network/v2.0/ports", { port: { network_id: randomUUID() } });
  const port_id: string = created.json().port.id;
  const attach = async (to: string) =>
    (await rig.post(`/v2.1/servers/${to}/os-interface`, { interfaceAttachment: { port_id } })).statusCode;
  expect(await attach(server)).toBe(200);

  const [patched, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const unbind = rig.networkPorts.unbindPorts.bind(rig.networkPorts);
  rig.networkPorts.unbindPorts = async (...asked) => {
    patched.resolve();
    await goOn.promise;
    return unbind(...asked);
  };
  const detaching = rig.delete(`/v2.1/servers/${server}/os-interface/${port_id}`);
  await patched.promise;
  expect(await attach(server)).toBe(200);
  goOn.resolve();
  expect((await detaching).statusCode).toBe(202);

  expect(await attach(other)).toBe(409);
  expect((await rig.get(`/network/v2.0/ports/${port_id}`)).json().port.device_id).toBe(server);
});
