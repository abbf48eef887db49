import { randomUUID } from "node:crypto";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { ServerPort } from "../../proto/gen/berth/shared.ts";
import type { ConductorSettings } from "../../services/conductor/settings.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../contract/networking.contract.ts";
import { eventually } from "./eventually.ts";
import { SmallCell } from "./small-cell.ts";

/** A cell whose server 1 has ports in the twin of Neutron. */
export class CellWithPorts {
  readonly cell: SmallCell;
  readonly neutron: MemoryNetworking;

  static async open(): Promise<CellWithPorts> {
    return new CellWithPorts(await new SmallCell().open());
  }

  private constructor(cell: SmallCell) {
    this.cell = cell;
    this.neutron = new MemoryNetworking({ newId: randomUUID });
    putContractNetworks(this.neutron);
    cell.networking = this.neutron;
  }

  /** Starts a conductor and three hosts. */
  async start(settings: Partial<ConductorSettings> = {}): Promise<void> {
    await this.cell.startConductor(1, settings);
    for (const host of [0, 1, 2]) await this.cell.startAgent({ id: `agent-${host}`, hosts: [host], vcpus: 4 });
    await this.cell.hostsUp(3);
  }

  /** Makes a port of server 1, and returns it as the server's record has it. */
  portOfServer(): ServerPort {
    const port = this.neutron.putPort({ projectId: "one", networkId: OWN_NETWORK, deviceId: serverId(1) });
    return {
      portId: port.id,
      networkId: OWN_NETWORK,
      tag: "",
      networkName: "own",
      addresses: [],
      floatingAddresses: [],
      slot: 0,
      macAddress: port.macAddress,
    };
  }

  /** The hosts to which the ports are bound. */
  hosts(): readonly string[] {
    return this.neutron.all().map(({ host }) => host);
  }

  runs(host: number): Promise<true> {
    return eventually(`it to run on host-${host}`, () => this.cell.runsOn(1).join() === `host-${host}`);
  }

  async boot(ports: readonly ServerPort[]): Promise<void> {
    await this.cell.boot(1, [0, 1, 2], { ports });
    await this.cell.become(1, "ACTIVE");
    await this.runs(0);
  }
}
