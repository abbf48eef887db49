import type { KnownRoute } from "./known-paths.ts";

type Schema = Readonly<Record<string, unknown>>;

/** The schemas of a document. Equal ones are stated once, under the name of the operation that has them first. */
export class DocumentSchemas {
  readonly #names = new Map<string, string>();

  /** Refers to the schema of a route's body. Returns null for a route without one. */
  ofBody(operationId: string, { schema, facts }: KnownRoute): Schema | null {
    if (schema.body === undefined) return null;
    const { actions } = facts;
    const isNamed = Object.hasOwn(schema.body as object, "properties");
    // Where the schema does not list the actions, the route's facts do.
    const body =
      actions === undefined || isNamed ? schema.body : { ...(schema.body as object), ...onlyActions(actions) };
    return this.#refer(`${capitalized(operationId)}Body`, body);
  }

  /** Refers to the schema of an answer. Returns null for an answer without one. */
  ofAnswer(operationId: string, schema: unknown): Schema | null {
    return schema === undefined ? null : this.#refer(`${capitalized(operationId)}Answer`, schema);
  }

  /** Returns all schemas that something refers to, by their names. */
  all(): Readonly<Record<string, Schema>> {
    const byName = Array.from(this.#names, ([text, name]) => [name, JSON.parse(text) as Schema] as const);
    return Object.fromEntries(byName.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  #refer(name: string, schema: unknown): Schema {
    const text = JSON.stringify(schema);
    const known = this.#names.get(text) ?? name;
    this.#names.set(text, known);
    return { $ref: `#/components/schemas/${known}` };
  }
}

const capitalized = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;

/** The fields of an action's value are not described, because they depend on the microversion. */
function onlyActions(actions: NonNullable<KnownRoute["facts"]["actions"]>): Schema {
  const properties = Object.fromEntries(Array.from(actions, ([name, { value = {} }]) => [name, value]));
  return { properties, additionalProperties: false };
}
