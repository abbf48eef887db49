import type { AttributeValueAsked, IndexedAttribute } from "../../../core/stores/cell/listed-servers.ts";

/** SQL of the name of a server's key pair. */
export const KEY_NAME = "message_late_field(spec, 24)";

/** The expressions of the indexes, which these must equal. */
const EXPRESSIONS: Readonly<Record<IndexedAttribute, string>> = {
  flavor: "message_field(message_field(spec, 5), 1)",
  image: "message_field(spec, 6)",
  user: "user_id",
  key: KEY_NAME,
  reservation: "substring(message_field(spec, 9) from 31)",
  status: "status",
  host: "host",
};
/** The conditions of the indexes, which Postgres must find in the statements. */
const LISTED: Readonly<Record<IndexedAttribute, string>> = {
  ...{ flavor: "deleted_at is null", image: "deleted_at is null", user: "deleted_at is null" },
  ...{ key: `deleted_at is null and ${KEY_NAME} is not null`, reservation: "deleted_at is null" },
  ...{ status: "true", host: "host is not null" },
};
/** Nearly no server is without a host, and each has a project except the rows that only close a UUID. */
export const WITHOUT_HOST = "host is null and deleted_at is null and project_id <> ''";
/** The index has the first bytes of longer values, too. */
export const INDEXED_BYTES_MAX = 1_024;

const TEXTS: ReadonlySet<IndexedAttribute> = new Set(["user", "status", "host"]);
const typeOf = (attribute: IndexedAttribute): string => (TEXTS.has(attribute) ? "text" : "bytea");

/** SQL of a row for each value of a parameter, to which `indexedValues` is given. */
export const eachValue = (attribute: IndexedAttribute, parameter: string): string =>
  `unnest(${parameter}::${typeOf(attribute)}[]) as w (value)`;

/** SQL of the conditions of the servers that the index has for the value of a row of `eachValue`. */
export const inListOfValue = (attribute: IndexedAttribute): string =>
  `${EXPRESSIONS[attribute]} = w.value and ${LISTED[attribute]}`;

/** The values that are asked for, as the index has them. */
export const indexedValues = ({
  attribute,
  value,
  otherValues = [],
}: AttributeValueAsked): readonly (string | Buffer)[] =>
  [value, ...otherValues].map((one) => (TEXTS.has(attribute) ? one : Buffer.from(one).subarray(0, INDEXED_BYTES_MAX)));

/** SQL of the condition that a server has a value of an attribute. Adds the values to those of the statement. */
export function conditionOf(asked: AttributeValueAsked, values: unknown[]): string {
  const its = indexedValues(asked);
  const isOne = `${EXPRESSIONS[asked.attribute]} = any ($${values.push(its)}::${typeOf(asked.attribute)}[])`;
  // Most messages do not have the bytes of the value anywhere, which a search finds out in a tenth of the time in which its field is read.
  if (isSearchedFirst(asked)) return `(position($${values.push(its[0])}::bytea in spec) > 0 and ${isOne})`;
  return asked.orNone === true ? `(host is null or ${isOne})` : isOne;
}

/** Whether the condition is the value of a field of the message. */
const isSearchedFirst = ({ attribute, otherValues = [] }: AttributeValueAsked): boolean =>
  !TEXTS.has(attribute) && otherValues.length === 0;

/** The part of a statement's name that stands for these conditions. */
export const namePartOf = (others: readonly AttributeValueAsked[]): string =>
  others.length === 0 ? "" : `_${others.map(initialOf).join("")}`;

const initialOf = (other: AttributeValueAsked): string =>
  `${other.attribute[0]}${other.orNone ? "n" : ""}${isSearchedFirst(other) ? "1" : ""}`;
