import { CannotHarmError, type Link, type LinkEnd, type Way } from "../chaos-cloud.ts";
import type { ContainerPart } from "./container-part.ts";
import { docker } from "./docker.ts";

/** A container's connection to one of its networks. The link is cut by disconnecting the container from that network. */
export class NetworkLink implements Link {
  readonly from: LinkEnd;
  readonly to: LinkEnd;
  readonly #network: string;
  readonly #member: ContainerPart;
  #cut = false;
  /** The operation begun last. Docker refuses to do the same thing twice at the same time, so operations run one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  /** `member` is the container that is disconnected. */
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
    if (way !== "both") throw new CannotHarmError("a container can be cut off only in both directions");
    await this.#inTurn(async () => {
      if (this.#cut) return;
      await docker(["docker", "network", "disconnect", this.#network, this.#member.id]);
      this.#cut = true;
    });
  }

  async slow(): Promise<void> {
    throw new CannotHarmError("networks of containers cannot be slowed down");
  }

  /** May be called while another caller heals the link, because a run that is broken off does not wait for its faults to end. */
  async heal(): Promise<void> {
    await this.#inTurn(async () => {
      if (!this.#cut) return;
      await docker(["docker", "network", "connect", "--alias", this.#member.name, this.#network, this.#member.id]);
      this.#cut = false;
    });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined); // The caller of the operation gets its error.
    return done;
  }
}
