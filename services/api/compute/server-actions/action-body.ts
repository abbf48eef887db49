import { badRequest, invalidField } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";

const HOST_CHARACTERS_MAX = 255;
const HOST = /^[a-zA-Z0-9\-._]+$/;

/** What the value of every action is that reads it. */
export const ACTION_VALUE = { type: ["object", "null"] };

/**
 * The value of an action in a body. The allowed fields depend on the microversion, so each action reads its own fields and refuses all
 * others.
 */
export class ActionBody {
  readonly #action: string;
  readonly #fields: Readonly<Record<string, unknown>>;
  /** The body was null. */
  readonly isNull: boolean;

  /** Refuses a value that is neither null nor an object. */
  constructor(action: string, value: unknown) {
    if (value !== null && (typeof value !== "object" || Array.isArray(value)))
      throw invalidField(action, value, `${String(value)} is not of type 'object', 'null'`);
    this.#action = action;
    this.isNull = value === null;
    this.#fields = (value ?? {}) as Record<string, unknown>;
  }

  refuseOthers(...known: readonly string[]): this {
    const other = Object.keys(this.#fields).find((name) => !known.includes(name));
    if (other !== undefined)
      throw badRequest(
        `Invalid input for field/attribute ${this.#action}. Additional properties are not allowed ('${other.slice(0, 100)}' was unexpected)`,
      );
    return this;
  }

  require(...names: readonly string[]): this {
    for (const name of names) {
      if (!(name in this.#fields)) throw invalidField(this.#action, this.#fields, `'${name}' is a required property`);
    }
    return this;
  }

  has(name: string): boolean {
    return name in this.#fields;
  }

  /** Returns the named host, or "" when there is none. */
  host(): string {
    const { host } = this.#fields;
    if (host === undefined || host === null) return "";
    if (typeof host !== "string" || host.length > HOST_CHARACTERS_MAX || !HOST.test(host))
      throw invalidField("host", host, "It is not the name of a host.");
    return host;
  }

  flag(name: string): boolean {
    const value = this.#fields[name];
    if (value === undefined) return false;
    const flag = typeof value === "boolean" || typeof value === "string" ? readFlag(value) : null;
    if (flag === null) throw invalidField(name, value, `${String(value)} is not of type 'boolean'`);
    return flag;
  }

  /** Returns undefined when the field is missing. */
  text(name: string): string | undefined {
    const value = this.#fields[name];
    if (value === undefined) return undefined;
    if (typeof value !== "string" || value.length > HOST_CHARACTERS_MAX)
      throw invalidField(name, value, "It is not of type 'string'");
    return value;
  }

  /** Returns the password that the call gives, which may be of any length; undefined when there is none. */
  password(): string | undefined {
    const { adminPass } = this.#fields;
    // The value is in no message: it is a secret.
    if (adminPass !== undefined && typeof adminPass !== "string")
      throw badRequest("Invalid input for field/attribute adminPass. It is not of type 'string'");
    return adminPass;
  }

  raw(name: string): unknown {
    return this.#fields[name];
  }
}
