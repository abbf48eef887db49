import { afterEach, describe, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

/** Before 2.14 an evacuation must state whether storage is shared. */
const HEADERS = { "openstack-api-version": "compute 2.90" };

describe("a requested evacuation", () => {
  let rig: ApiRig;
  afterEach(() => rig.close());

  /** A server on host-0 of an api with this setting, and the answer to its evacuation. */
  async function evacuating(evacuateUnfenced = false) {
    rig = await ApiRig.start({ evacuateUnfenced });
    const { store } = rig.cell("north");
    const server = await rig.bootActive("north", 0);
    const evacuate = async () => {
      const { statusCode, body } = await rig.post(`/v2.1/servers/${server}/action`, { evacuate: {} }, HEADERS);
      return { status: statusCode, body };
    };
    return { store, evacuate, waiting: async () => (await rig.moves.waiting([server])).length };
  }

  test("of a host that is up is refused with Nova's words", async () => {
    const { evacuate } = await evacuating(true);
    expect(await evacuate()).toEqual({
      status: 400,
      body: expect.stringContaining("Compute service of host-0 is still in use. Migrate its servers instead;"),
    });
  });

  test("of a host that is merely unseen is refused with advice, and accepted once the host is forced down", async () => {
    const { store, evacuate, waiting } = await evacuating();
    await store.expireAgents(0);
    const refused = await evacuate();
    expect(refused.status).toBe(409);
    expect(refused.body).toContain("openstack compute service set --down host-0 nova-compute");
    expect(await waiting()).toBe(0);
    await store.hostAdmin().setForcedDown("host-0", true);
    expect((await evacuate()).status).toBe(200);
    expect(rig.moves.all()).toMatchObject([{ request: { kind: "evacuate", fenceWaived: false } }]);
  });

  test("of a host that is merely unseen is accepted where the operator has waived the fence, and tells the cell so", async () => {
    const { store, evacuate } = await evacuating(true);
    await store.expireAgents(0);
    expect((await evacuate()).status).toBe(200);
    expect(rig.moves.all()).toMatchObject([{ request: { kind: "evacuate", fenceWaived: true } }]);
  });
});
