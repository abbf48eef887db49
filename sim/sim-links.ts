import type { AgentPermit } from "../core/agent/agent-permit.ts";
import type { AgentListener, AgentStream, ConductorDialer } from "../core/agent/link.ts";
import type { AgentMessage, ConductorMessage } from "../proto/gen/berth/agent.ts";
import type { Closable } from "../runtime/closable.ts";
import { SimLinkEnd } from "./sim-link-end.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** The link between agents and conductors over the simulated network. */
export class SimLinks {
  readonly #world: Pick<World, "clock" | "network" | "onHeard">;
  readonly #listeners = new Map<
    string,
    {
      readonly process: SimProcess;
      arrived: (stream: AgentStream, permit: AgentPermit | null) => void;
      readonly streams: Set<AgentStream>;
    }
  >();

  constructor(world: Pick<World, "clock" | "network" | "onHeard">) {
    this.#world = world;
  }

  listen(process: SimProcess, address: string): AgentListener & Closable {
    const streams = new Set<AgentStream>();
    const entry = {
      process,
      streams,
      arrived: (stream: AgentStream, _permit: AgentPermit | null) => stream.close("the conductor is not ready"),
    };
    this.#listeners.set(address, entry);
    return {
      address,
      onAgent: (handler) => {
        entry.arrived = handler;
      },
      close: async () => {
        if (this.#listeners.get(address) === entry) this.#listeners.delete(address);
        for (const stream of streams) stream.close("the conductor stops");
      },
    };
  }

  /** The agent has a certificate for `permit`. */
  dialer(process: SimProcess, permit: AgentPermit): ConductorDialer {
    return {
      dial: (address) => {
        const near = new SimLinkEnd<AgentMessage, ConductorMessage>(this.#world, process);
        const entry = this.#listeners.get(address);
        const isUp = entry?.process.alive === true;
        if (!isUp || this.#world.network.isCut(process.name, entry.process.name)) {
          near.fail(`${address} cannot be reached`);
          return near;
        }
        const far = new SimLinkEnd<ConductorMessage, AgentMessage>(this.#world, entry.process);
        near.peer = far;
        far.peer = near;
        entry.streams.add(far);
        this.#world.clock.setTimer(0, () => {
          if (entry.process.alive && !far.closed) entry.arrived(far, permit);
        });
        return near;
      },
      close: () => {},
    };
  }
}
