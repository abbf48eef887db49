import { badRequest, type Fault, notFound } from "../../http/fault.ts";

/** What the Block Storage service does not take, in the words of Nova's `InvalidInput`. */
export const invalidInput = (why: string): Fault => badRequest(`Invalid input received: ${why}`);

export const snapshotNotFound = (id: string): Fault => notFound(`Snapshot ${id.slice(0, 100)} could not be found.`);
