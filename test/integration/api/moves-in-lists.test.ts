import { expect, test, vi } from "vitest";
import { ApiRig } from "./api-rig.ts";

const HEADERS = { "openstack-api-version": "compute 2.90" };

test("a move that waits for a host is shown in the detailed list, and the short list, which shows no task states, does not look for it", async () => {
  const rig = await ApiRig.start();
  try {
    const { store } = rig.cell("north");
    const [moving, resting] = [await rig.bootActive("north", 0), await rig.bootActive("north", 1)];
    await store.hostAdmin().setForcedDown("host-0", true);
    expect((await rig.post(`/v2.1/servers/${moving}/action`, { evacuate: {} }, HEADERS)).statusCode).toBe(200);
    const waiting = vi.spyOn(rig.moves, "waiting");
    const listed = async (path: string) => {
      const { servers } = (await rig.get(`/v2.1/${path}`)).json();
      return new Map<string, Record<string, unknown>>(servers.map((one: { readonly id: string }) => [one.id, one]));
    };
    const short = await listed("servers");
    expect([...short.keys()].sort()).toEqual([moving, resting].sort());
    expect([...short.values()].map((one) => Object.keys(one).sort())).toEqual(Array(2).fill(["id", "links", "name"]));
    expect(waiting).not.toHaveBeenCalled();
    const detailed = await listed("servers/detail");
    const states = [moving, resting].map((uuid) => detailed.get(uuid)?.["OS-EXT-STS:task_state"]);
    expect(states).toEqual(["rebuilding", null]);
  } finally {
    await rig.close();
  }
});
