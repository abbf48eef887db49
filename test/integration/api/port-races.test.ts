import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { answerInterfaces } from "../../rigs/answer-interfaces.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start();
});
afterEach(() => rig.close());

/** Two servers and a free port, with functions that attach it and return its owner. */
async function twoServersAndPort() {
  await answerInterfaces(rig.cell("north").bus, "north");
  const [server, other] = [await rig.bootActive("north", 0), await rig.bootActive("north", 1)];
  const created = await rig.post("/network/v2.0/ports", { port: { network_id: randomUUID() } });
  const portId: string = created.json().port.id;
  const attach = async (to: string) =>
    (await rig.post(`/v2.1/servers/${to}/os-interface`, { interfaceAttachment: { port_id: portId } })).statusCode;
  const holder = async (): Promise<string> => (await rig.get(`/network/v2.0/ports/${portId}`)).json().port.device_id;
  return { server, other, portId, attach, holder };
}

/**
 * Stops each call that is about to release a port: `reached` resolves when a call has come to that point, and `goOn` lets
 * it continue.
 */
function holdUnbinding() {
  const [reached, goingOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const unbind = rig.networkPorts.unbindPorts.bind(rig.networkPorts);
  rig.networkPorts.unbindPorts = async (...asked) => {
    reached.resolve();
    await goingOn.promise;
    return unbind(...asked);
  };
  return { reached: reached.promise, goOn: goingOn.resolve };
}

test("a detach against an attach of the same port to the same server: the attach keeps the port", async () => {
  const { server, other, portId, attach, holder } = await twoServersAndPort();
  expect(await attach(server)).toBe(200);

  const { reached, goOn } = holdUnbinding();
  const detaching = rig.delete(`/v2.1/servers/${server}/os-interface/${portId}`);
  await reached;
  expect(await attach(server)).toBe(200);
  goOn();
  expect((await detaching).statusCode).toBe(202);

  expect([await attach(other), await holder()]).toEqual([409, server]);
});

describe("an attach that is refused against another of the same port to the same server", () => {
  /** For each patch of an allocation in turn: when it may continue, and whether it is refused. */
  async function scene(turns: readonly { readonly goesOn: Promise<void>; readonly isRefused: boolean }[]) {
    const ports = await twoServersAndPort();
    const { store } = rig.cell("north");
    const patch = store.patchHoldings.bind(store);
    const arrived = turns.map(() => Promise.withResolvers<void>());
    let next = 0;
    store.patchHoldings = async (patches) => {
      const [turn, here] = [turns[next], arrived[next]];
      next += 1;
      here?.resolve();
      await turn?.goesOn;
      return turn?.isRefused ? patches.map(() => ({ kind: "busy", running: "resize" })) : patch(patches);
    };
    return { ...ports, arrived };
  }

  test("an attach that binds the port while the refused one releases it keeps the port", async () => {
    const atOnce = Promise.resolve();
    const { server, other, attach, holder } = await scene([{ goesOn: atOnce, isRefused: true }]);
    const { reached, goOn } = holdUnbinding();
    const refused = attach(server);
    await reached;
    expect(await attach(server)).toBe(200);
    goOn();
    expect(await refused).toBe(409);
    expect([await attach(other), await holder()]).toEqual([409, server]);
  });

  test("a call that bound the port first, and attaches it after the refusal, keeps the port", async () => {
    const goOn = Promise.withResolvers<void>();
    const turns = [
      { goesOn: goOn.promise, isRefused: false },
      { goesOn: Promise.resolve(), isRefused: true },
    ];
    const { server, other, attach, holder, arrived } = await scene(turns);
    const first = attach(server);
    await arrived[0]?.promise;
    expect(await attach(server)).toBe(409);
    goOn.resolve();
    expect(await first).toBe(200);
    expect([await attach(other), await holder()]).toEqual([409, server]);
  });
});
