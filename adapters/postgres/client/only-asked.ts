/**
 * The part of a statement that selects rows by the values of columns, with only the conditions of this query: Postgres may keep a plan of one statement for all queries
 * (`$1 is null or …`), and that plan would walk through all rows. A null column is not asked for; of an array, any value is. `values` has those of the statement's other parameters.
 */
export function onlyAsked(
  name: string,
  columns: Readonly<Record<string, string | readonly string[] | null>>,
  values: readonly unknown[] = [],
): { readonly name: string; readonly where: string; readonly values: readonly unknown[] } {
  const asked = Object.entries(columns).filter(([, value]) => value !== null);
  const conditions = asked.map(([column, value], at) => {
    const parameter = `$${values.length + at + 1}`;
    return `${column} = ${Array.isArray(value) ? `any (${parameter})` : parameter}`;
  });
  return {
    name: [name, ...asked.map(([column]) => column)].join("_"),
    where: conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`,
    values: [...values, ...asked.map(([, value]) => value)],
  };
}
