import type { ServerSpec, ServerVolume } from "../../../../proto/gen/berth/shared.ts";
import type { Fault } from "../../http/fault.ts";

/**
 * Checks, right before an operation that writes a volume into the server's spec begins, that the spec still has it: it may have been detached since the server was
 * read. Throws `fault` otherwise.
 */
export const stillWith =
  ({ volumeId }: Pick<ServerVolume, "volumeId">, fault: () => Fault) =>
  (now: ServerSpec): ServerSpec => {
    if (now.volumes.every((one) => one.volumeId !== volumeId)) throw fault();
    return now;
  };
