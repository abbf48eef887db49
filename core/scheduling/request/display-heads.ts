import { type ResourceClass, resourceClass } from "../../ledger/ids.ts";

/** The class of the displays that mediated devices of a graphics card can drive. */
export const DISPLAY_HEAD_CLASS = "VGPU_DISPLAY_HEAD";

/** A VGPU and the displays that it drives. */
export const VGPU_WITH_DISPLAY: readonly ResourceClass[] = ["VGPU", DISPLAY_HEAD_CLASS].map((name) =>
  resourceClass(name),
);
