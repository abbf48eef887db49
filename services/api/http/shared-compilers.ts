import { AjvCompiler } from "@fastify/ajv-compiler";
import { SerializerSelector } from "@fastify/fast-json-stringify-compiler";
import type { FastifyServerOptions } from "fastify";

type CompilersFactory = NonNullable<NonNullable<FastifyServerOptions["schemaController"]>["compilersFactory"]>;
type Compile = (route: { readonly schema: unknown }) => unknown;
type Build = (externalSchemas: unknown, options?: unknown) => Compile;

/**
 * Fastify's own compilers, wrapped to compile each schema once per process instead of once per route: the same routes exist under several
 * prefixes, and a process may have several servers. They do not support schemas that refer to others by name.
 */
export const sharedCompilers = {
  buildValidator: remembering(AjvCompiler() as Build),
  buildSerializer: remembering(SerializerSelector() as Build),
} as CompilersFactory;

function remembering(build: Build): Build {
  const byOptions = new Map<string, Compile>();
  return (externalSchemas, options) => {
    const key = JSON.stringify([externalSchemas, options]);
    const known = byOptions.get(key);
    if (known) return known;
    const compile = build(externalSchemas, options);
    const compiled = new Map<string, unknown>();
    // Most schemas are the same object each time.
    const ofObject = new WeakMap<object, unknown>();
    const bySource = (route: Parameters<Compile>[0]) => {
      const source = JSON.stringify(route.schema);
      if (!compiled.has(source)) compiled.set(source, compile(route));
      return compiled.get(source);
    };
    const remember: Compile = (route) => {
      const { schema } = route;
      if (typeof schema !== "object" || schema === null) return bySource(route);
      if (!ofObject.has(schema)) ofObject.set(schema, bySource(route));
      return ofObject.get(schema);
    };
    byOptions.set(key, remember);
    return remember;
  };
}
