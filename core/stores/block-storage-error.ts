import { NeighbourFault } from "./neighbour-fault.ts";

/** The Block Storage service could not do its work. */
export class BlockStorageError extends NeighbourFault {
  override readonly name = "BlockStorageError";
}
