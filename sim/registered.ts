export type Served = (...args: readonly unknown[]) => unknown;

/** What an api has registered. */
export class Registered {
  readonly functions: Served[] = [];
  /** Everything else, and where a function stands. */
  readonly texts: string[] = [];

  /** Returns the value with each function replaced by one that calls the function which the called api has registered in its place. */
  note(value: unknown): unknown {
    if (typeof value === "function") {
      this.texts.push("function");
      return calling(this.functions.push(value as Served) - 1);
    }
    if (Array.isArray(value)) return value.map((one) => this.note(one));
    if (typeof value !== "object" || value === null) this.texts.push(String(value));
    else for (const [name, part] of Object.entries(value)) this.texts.push(name, textOf(part));
    return value;
  }

  noteAll(values: object): Record<string, unknown> {
    const noted: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(values)) {
      this.texts.push(name);
      noted[name] = this.note(value);
    }
    return noted;
  }
}

/** The texts of schemas, most of which are the same object each time. */
const textsOfObjects = new WeakMap<object, string>();

function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const text = textsOfObjects.get(value) ?? JSON.stringify(value);
  textsOfObjects.set(value, text);
  return text;
}

/** A call, which brings the functions of its api along. */
export interface ServedCall {
  served?: readonly Served[];
}

function calling(at: number): Served {
  // The request comes first, or after an error.
  return (...args) => (servedCallOf(args[0]) ?? servedCallOf(args[1]))!.served![at]!(...args);
}

/** Returns the call of a request of Fastify's, or of one of Node's kind. */
function servedCallOf(request: unknown): ServedCall | null {
  const { raw = request } = request as { readonly raw?: unknown };
  return (raw as ServedCall).served === undefined ? null : (raw as ServedCall);
}
