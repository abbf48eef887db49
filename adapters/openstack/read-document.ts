import { NetworkingError } from "../../core/stores/networking-error.ts";

/** The fields of a JSON object. */
export type DocumentFields = Readonly<Record<string, unknown>>;

/** Returns the fields of a value, which are none if it is no object. */
export const documentFields = (value: unknown): DocumentFields =>
  typeof value === "object" && value !== null ? (value as DocumentFields) : {};

/** Returns a field's text, which is empty if it is no text. */
export const textField = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns the id of something that Neutron has answered. Throws a `NetworkingError` if it has none. */
export function documentId({ id }: DocumentFields, what: string): string {
  if (typeof id !== "string") throw new NetworkingError("bad-answer", `Neutron's answer has a ${what} without an id`);
  return id;
}
