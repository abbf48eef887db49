import type { Pool, QueryConfig } from "pg";

/** A node of a plan, as `explain (format json)` shows it. */
export type Plan = { readonly [key: string]: unknown; readonly Plans?: readonly Plan[] };

/** Notes the last statement of a store, to examine the plan that Postgres keeps for it. A prepared statement and its kept plan belong to a connection, so the pool has one. */
export class KeptPlans {
  /** The pool for the store. */
  readonly pool: Pool;
  readonly #real: Pool;
  #asked: QueryConfig | undefined;

  constructor(real: Pool) {
    this.#real = real;
    this.pool = new Proxy(real, {
      get: (target, name) => {
        const member = Reflect.get(target, name);
        if (name !== "query") return typeof member === "function" ? member.bind(target) : member;
        return (query: QueryConfig) => {
          this.#asked = query;
          return target.query(query);
        };
      },
    });
  }

  /** The kept plan of the last statement, after it was run once more. */
  async last(): Promise<Plan> {
    const values = (this.#asked?.values ?? []).map(literal);
    const call = values.length === 0 ? "" : ` (${values.join()})`;
    const { rows } = await this.#real.query(`explain (analyze, format json) execute "${this.#asked?.name}"${call}`);
    return rows[0]["QUERY PLAN"][0].Plan;
  }

  /** The most rows that a node of the kept plan of the last statement has read. `isOf` may leave nodes out. */
  async rowsRead(isOf: (plan: Plan) => boolean = () => true): Promise<number> {
    return rowsReadBy(await this.last(), isOf);
  }
}

/** The most rows that a node of the plan has read. */
export function rowsReadBy(plan: Plan, isOf: (plan: Plan) => boolean = () => true): number {
  const removed = Number(plan["Rows Removed by Filter"] ?? 0) + Number(plan["Rows Removed by Index Recheck"] ?? 0);
  const its = (Number(plan["Actual Rows"]) + removed) * Number(plan["Actual Loops"]);
  return Math.max(isOf(plan) ? its : 0, ...(plan.Plans ?? []).map((part) => rowsReadBy(part, isOf)));
}

function literal(value: unknown): string {
  // The statement says what the array has.
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return `'{${value.join()}}'`;
  if (Array.isArray(value)) return `array[${value.map(literal).join()}]`;
  if (Buffer.isBuffer(value)) return `'\\x${value.toString("hex")}'::bytea`;
  return typeof value === "number" ? String(value) : value === null ? "null" : `'${value}'`;
}
