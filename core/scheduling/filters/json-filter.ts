import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { HostFacts } from "../host-facts.ts";
import { hostAttribute } from "./host-attributes.ts";
import type { HostFilter } from "./host-filter.ts";
import { hintValue } from "./scheduler-hints.ts";

/** Limits on the depth and length of queries, since they come from users. */
const DEPTH_MAX = 20;
const LENGTH_MAX = 10_000;

const COMPARISONS: Readonly<Record<string, (a: unknown, b: unknown) => boolean>> = {
  "=": (a, b) => a === b,
  "<": ordered((a, b) => a < b),
  ">": ordered((a, b) => a > b),
  "<=": ordered((a, b) => a <= b),
  ">=": ordered((a, b) => a >= b),
};
const COMBINATIONS: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  not: (values) => values.map((value) => !isTrue(value)),
  or: (values) => values.some(isTrue),
  and: (values) => values.every(isTrue),
  in: (values) => values.length > 1 && values.slice(1).includes(values[0]),
};

/**
 * Passes hosts for which the query in the hint `query` is true: `[">=", "$free_ram_mb", 1024]`, with `=`, `<`, `>`, `<=`, `>=`, `in`,
 * `not`, `and`, `or`. `$name.key` is an attribute of the host (host-attributes.ts). An attribute that the host lacks is left out of the
 * operands, and a comparison with fewer than two operands is false.
 */
export const jsonFilter: HostFilter = {
  name: "JsonFilter",
  decidedBy: "request",
  bind(spec, { view }) {
    const hint = hintValue(spec, "query");
    if (hint === undefined || hint === "") return null;
    const query = parseQuery(hint);
    if (query === null) return () => "the hint query is not a valid query";
    if (query.length === 0) return null;
    return (host) => (isTrue(evaluate(query, host, view)) ? null : "the query is false for it");
  },
};

/** The parsed query, or null when the text is not a query. */
function parseQuery(text: string): readonly unknown[] | null {
  if (text.length > LENGTH_MAX) return null;
  try {
    const query: unknown = JSON.parse(text);
    return isQuery(query, DEPTH_MAX) ? query : null;
  } catch {
    return null;
  }
}

function isQuery(query: unknown, depth: number): query is readonly unknown[] {
  if (!Array.isArray(query) || depth === 0) return false;
  if (query.length === 0) return true;
  const [command, ...operands] = query;
  if (typeof command !== "string") return false;
  if (!Object.hasOwn(COMPARISONS, command) && !Object.hasOwn(COMBINATIONS, command)) return false;
  return operands.every((operand) => !Array.isArray(operand) || isQuery(operand, depth - 1));
}

function evaluate(query: readonly unknown[], host: HostFacts, view: LedgerView): unknown {
  if (query.length === 0) return true;
  const [command, ...operands] = query;
  const values = operands
    .map((operand) => (Array.isArray(operand) ? evaluate(operand, host, view) : operandOf(operand, host, view)))
    .filter((value) => value !== undefined && value !== null);
  const compare = COMPARISONS[String(command)];
  if (compare) return values.length > 1 && values.slice(1).every((value) => compare(values[0], value));
  return COMBINATIONS[String(command)]?.(values);
}

function operandOf(operand: unknown, host: HostFacts, view: LedgerView): unknown {
  if (operand === "") return undefined;
  if (typeof operand !== "string" || !operand.startsWith("$")) return operand;
  return hostAttribute(host, view, operand.slice(1).split("."));
}

/** A list (the result of `not` with several operands) is true when one of its items is. */
function isTrue(value: unknown): boolean {
  return Array.isArray(value) ? value.some(isTrue) : Boolean(value);
}

function ordered(compare: (a: string | number, b: string | number) => boolean) {
  return (a: unknown, b: unknown): boolean => {
    if (typeof a === "number" && typeof b === "number") return compare(a, b);
    return typeof a === "string" && typeof b === "string" && compare(a, b);
  };
}
