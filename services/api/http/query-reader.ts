import { badRequest, invalidQuery } from "./fault.ts";
import { readFlag } from "./schema.ts";

/** The parameters that a route knows, each with the first microversion 2.<minor> that has it. */
export type QueryParameters = Readonly<Record<string, number>>;

/** Whether a microversion has a parameter. */
export function isKnownAt(minor: number, known: QueryParameters, name: string): boolean {
  return Object.hasOwn(known, name) && minor >= (known[name] ?? 0);
}

/** Refuses a query with a parameter that the microversion does not have. */
export function refuseOtherParameters(query: object, known: QueryParameters, minor: number): void {
  const other = Object.keys(query).find((name) => !isKnownAt(minor, known, name));
  if (other !== undefined) throw badRequest(`Additional properties are not allowed ('${other}' was unexpected)`);
}

/**
 * Reads the parameters of a query and refuses invalid values. Of a repeated parameter the last value counts. Text that no database stores
 * (the character NUL) has already been refused for every route (readable-input.ts).
 */
export class QueryReader {
  readonly #query: Readonly<Record<string, string | readonly string[]>>;

  constructor(query: Readonly<Record<string, string | readonly string[]>>) {
    this.#query = query;
  }

  all(name: string): readonly string[] {
    const value = this.#query[name];
    if (value === undefined) return [];
    return typeof value === "string" ? [value] : value;
  }

  text(name: string): string | undefined {
    return this.all(name).at(-1);
  }

  wholeNumber(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^\d{1,9}$/.test(text)) throw invalidQuery(name, text, "It is not a whole number from 0 on.");
    return Number(text);
  }

  /** Reads a flag. An empty value means true, as in `?all_tenants`. */
  flag(name: string): boolean {
    const text = this.text(name);
    if (text === undefined) return false;
    const truth = text === "" ? true : readFlag(text);
    if (truth === null) throw invalidQuery(name, text, "It is neither true nor false.");
    return truth;
  }

  /** Reads an ISO 8601 time, as milliseconds since the epoch. A time without a zone is UTC. */
  time(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(text) || !text.includes("T") ? text : `${text}Z`;
    const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(zoned.replace(" ", "+")) : Number.NaN;
    if (Number.isNaN(atMs)) throw invalidQuery(name, text, "It is not an ISO 8601 time.");
    return atMs;
  }

  /** Reads `limit`, but never returns more than `most`. */
  limit(most: number): number {
    return Math.min(this.wholeNumber("limit") ?? most, most);
  }
}
