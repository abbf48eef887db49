/** Text forms of arrays and composites. A whole batch becomes one parameter, without the driver's work for each element. */

/** An array of values that need no quotes: numbers, uuids, `t` and `f`. */
export function arrayLiteral(values: readonly (string | number)[]): string {
  return `{${values.join(",")}}`;
}

/** An array of any texts. `null` is SQL's null. */
export function textArrayLiteral(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? "null" : quoted(value))).join(",")}}`;
}

/** A composite value whose fields are literals themselves. */
export function compositeLiteral(fields: readonly string[]): string {
  return `(${fields.map(quoted).join(",")})`;
}

function quoted(text: string): string {
  return /["\\]/.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : `"${text}"`;
}
