import { AjvCompiler } from "@fastify/ajv-compiler";
import { SerializerSelector } from "@fastify/fast-json-stringify-compiler";
import type { FastifyServerOptions } from "fastify";

type CompilersFactory = NonNullable<NonNullable<FastifyServerOptions["schemaController"]>["compilersFactory"]>;
/** A validator, which leaves its findings in `errors`, or a serializer. */
type Compiled = ((...values: unknown[]) => unknown) & { errors?: unknown };
type Compile = (route: { readonly schema: unknown }) => Compiled;
type Build = (externalSchemas: unknown, options?: unknown) => Compile;

/** What compiles the schemas that no request has needed yet. */
const pending = new Set<() => void>();

/**
 * Fastify's own compilers, wrapped to compile each schema once per process instead of once per route: the same routes exist under several
 * prefixes, and a process may have several servers. A schema is compiled when the first request needs it: to compile all of them takes a third of the time
 * that an api needs until it serves. They do not support schemas that refer to others by name.
 */
export const sharedCompilers = {
  buildValidator: remembering(AjvCompiler() as Build),
  buildSerializer: remembering(SerializerSelector() as Build),
} as CompilersFactory;

/** Compiles what no request has needed yet. Throws when a schema cannot be compiled, which otherwise the first request would find. */
export function compileEverySchema(): void {
  for (const compile of pending) compile();
}

function remembering(build: Build): Build {
  const byOptions = new Map<string, Compile>();
  return (externalSchemas, options) => {
    const key = JSON.stringify([externalSchemas, options]);
    const known = byOptions.get(key);
    if (known) return known;
    const compile = build(externalSchemas, options);
    const compiled = new Map<string, Compiled>();
    // Most schemas are the same object each time.
    const ofObject = new WeakMap<object, Compiled>();
    const bySource = (route: Parameters<Compile>[0]) => {
      const source = JSON.stringify(route.schema);
      const known = compiled.get(source) ?? lazily(() => compile(route));
      compiled.set(source, known);
      return known;
    };
    const remember: Compile = (route) => {
      const { schema } = route;
      if (typeof schema !== "object" || schema === null) return bySource(route);
      const known = ofObject.get(schema) ?? bySource(route);
      ofObject.set(schema, known);
      return known;
    };
    byOptions.set(key, remember);
    return remember;
  };
}

function lazily(compile: () => Compiled): Compiled {
  let compiled: Compiled | null = null;
  const compiledNow = (): Compiled => {
    compiled ??= compile();
    pending.delete(compiledNow);
    return compiled;
  };
  pending.add(compiledNow);
  const run: Compiled = (...values) => {
    const own = compiled ?? compiledNow();
    const result = own(...values);
    run.errors = own.errors;
    return result;
  };
  return run;
}
