import { expect, test } from "vitest";
import { MemoryApiStore } from "../../../adapters/memory/api/memory-api-store.ts";
import { MemoryPortStore } from "../../../adapters/memory/api/memory-port-store.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { numbered, serverId } from "../../../test/contract/cell-fixtures.ts";
import { bindPorts } from "./bind-ports.ts";

// The clock of the database is years away from the one of this process, which plays the api.
test.each([0, 60_000, 600_000, 4_000_000_000_000])(
  "a call that is about to be accepted keeps its port for a minute, by the database's clock alone (which says %i)",
  async (startMs) => {
    const clock = new ManualClock(startMs);
    const store = new MemoryApiStore({ clock });
    const networkPorts = new MemoryPortStore(clock, { requests: store });
    const port = {
      id: numbered(0xf, 1),
      projectId: "p",
      networkId: numbered(0xf, 2),
      name: "",
      groups: [],
      address: null,
      endsWithServer: false,
      securityGroups: null,
    };
    await networkPorts.createPort({ ...port, createdAtMs: 0, binding: null });
    const deps = { networkPorts, store, cells: new Map() };
    const bind = async (server: number) => bindPorts(deps, await networkPorts.ports([port.id]), serverId(server));
    expect(await bind(1)).toMatchObject([{ wasOwn: false }]);
    clock.advance(59_000);
    await expect(bind(2)).rejects.toThrow(`Port ${port.id} is still in use.`);
    clock.advance(2_000);
    expect(await bind(2)).toMatchObject([{ wasOwn: false }]);
  },
);
