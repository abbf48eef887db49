import { beforeEach, describe, expect, test } from "vitest";
import type { HostMapStore } from "../../core/stores/api/host-map-store.ts";

/** The guarantees of both implementations of the table of hosts. */
export function hostMapStoreContract(name: string, makeStore: () => Promise<HostMapStore>): void {
  describe(`the map of hosts in ${name}`, () => {
    let store: HostMapStore;
    beforeEach(async () => {
      store = await makeStore();
    });

    test("knows no hosts of a cell that was never reported", async () => {
      expect(await store.hostsOf("north")).toEqual([]);
    });

    test("keeps the hosts of each cell by name, and forgets removed ones", async () => {
      await store.keepHosts("north", ["host-2", "Host-3", "host-1", "host-1"]);
      await store.keepHosts("south", ["host-9"]);
      expect(await store.hostsOf("north")).toEqual(["Host-3", "host-1", "host-2"]);
      await store.keepHosts("north", ["host-4", "host-2"]);
      expect(await store.hostsOf("north")).toEqual(["host-2", "host-4"]);
      expect(await store.hostsOf("south")).toEqual(["host-9"]);
      await store.keepHosts("north", []);
      expect(await store.hostsOf("north")).toEqual([]);
    });

    test("forgets one host, also while another one is forgotten, and leaves those of other cells", async () => {
      await store.keepHosts("north", ["host-1", "host-2", "host-3"]);
      await store.keepHosts("south", ["host-1"]);
      await Promise.all(["host-1", "host-3", "unknown"].map((host) => store.forgetHost("north", host)));
      await store.forgetHost("west", "host-1");
      expect([await store.hostsOf("north"), await store.hostsOf("south")]).toEqual([["host-2"], ["host-1"]]);
    });

    test("succeeds for all of several apis that report the same cell at once", async () => {
      const names = Array.from({ length: 50 }, (_, index) => `host-${index}`).sort();
      await store.keepHosts("north", ["gone-1", "gone-2"]);
      await Promise.all([names, [...names].reverse(), names].map((hosts) => store.keepHosts("north", hosts)));
      expect(await store.hostsOf("north")).toEqual(names);
    });
  });
}
