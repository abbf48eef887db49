import { badRequest } from "../../http/fault.ts";
import type { FoundRecord } from "./server-volumes.ts";

/** The first microversion whose clients know that several servers may have a volume. */
const MULTIATTACH_FROM_MINOR = 60;

/** Refuses a volume that several servers may have at a time, before microversion 2.60 (400). Source: `MultiattachNotSupportedOldMicroversion` of Nova. */
export function refuseOldMultiattach({ isMultiattach }: Pick<FoundRecord, "isMultiattach">, minor: number): void {
  if (isMultiattach && minor < MULTIATTACH_FROM_MINOR)
    throw badRequest("Multiattach volumes are only supported starting with compute API version 2.60.");
}
