import { CannotHarmError, type Link, type LinkEnd, type Way } from "../chaos-cloud.ts";
import type { ContainerPart } from "./container-part.ts";
import { docker } from "./docker.ts";

/** What a container has on one of its networks; cut by taking it off that network. */
export class NetworkLink implements Link {
  readonly from: LinkEnd;
  readonly to: LinkEnd;
  readonly #network: string;
  readonly #member: ContainerPart;
  #cut = false;

  /** `member`: who is taken off. */
  constructor(options: {
    readonly from: LinkEnd;
    readonly to: LinkEnd;
    readonly network: string;
    readonly member: ContainerPart;
  }) {
    this.from = options.from;
    this.to = options.to;
    this.#network = options.network;
    this.#member = options.member;
  }

  async cut(way: Way): Promise<void> {
    if (way !== "both") throw new CannotHarmError("a container leaves a network both ways or not at all");
    if (this.#cut) return;
    await docker(["docker", "network", "disconnect", this.#network, this.#member.id]);
    this.#cut = true;
  }

  async slow(): Promise<void> {
    throw new CannotHarmError("networks of containers cannot be made slow");
  }

  async heal(): Promise<void> {
    if (!this.#cut) return;
    await docker(["docker", "network", "connect", "--alias", this.#member.name, this.#network, this.#member.id]);
    this.#cut = false;
  }
}
