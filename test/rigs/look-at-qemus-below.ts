import { sep } from "node:path";
import { type SeenQemu, seenQemus } from "../../adapters/qemu/running-qemu.ts";

/** Looks at the QEMUs that run in directories below this one: other tests may run QEMUs with the same devices at the same time. */
export const lookAtQemusBelow = (path: string) => async (): Promise<readonly SeenQemu[]> =>
  (await seenQemus()).filter(({ dir }) => dir?.startsWith(`${path}${sep}`));
