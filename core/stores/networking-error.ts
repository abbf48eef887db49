import { NeighbourFault } from "./neighbour-fault.ts";

/** The Networking service could not do its work. */
export class NetworkingError extends NeighbourFault {
  override readonly name = "NetworkingError";
}
