import { badRequest } from "../../http/fault.ts";

/** The first microversion that has each field of an attachment. */
const SINCE = { tag: 49, delete_on_termination: 79 } as const;

/** Refuses fields that the microversion does not have (400). */
export function refuseNewerFields(asked: Readonly<Record<string, unknown>>, minor: number): void {
  for (const [field, since] of Object.entries(SINCE))
    if (asked[field] !== undefined && minor < since) throw unexpected(field);
}

/** Returns the 400 for a field that the microversion does not have. */
export function unexpected(field: string) {
  return badRequest(
    `Invalid input for field/attribute volumeAttachment. Additional properties are not allowed ('${field}' was unexpected)`,
  );
}
