import { isUtf8 } from "node:buffer";
import type { FastifyRequest } from "fastify";
import { badRequest, describeValue, type Fault, invalidField, invalidQuery } from "./fault.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** True for a route that checks paths, queries and bodies itself and words its own refusals. */
    readsInput?: boolean;
  }
}

const NUL = "It contains the character NUL, which databases cannot store.";
const SURROGATE = "It contains half of a surrogate pair, which is not a character.";
const NOT_UTF8 = "It is not percent-encoded UTF-8.";

/** Returns why a text cannot be stored or searched for, or null when it can. */
function faultOfText(text: string): string | null {
  if (text.includes("\0")) return NUL;
  return text.isWellFormed() ? null : SURROGATE;
}

/**
 * Refuses a request whose path or query contains text that no database stores, with a 400 that names the parameter. Runs before schema
 * validation on every route.
 *
 * Cost: nothing for a query without a `%`.
 */
export function refuseUnreadable(request: FastifyRequest): void {
  if (request.is404 || request.routeOptions.config.readsInput === true) return;
  for (const [name, value] of Object.entries((request.params ?? {}) as Readonly<Record<string, string>>)) {
    const why = faultOfText(value);
    if (why !== null) throw invalidField(name, readable(value), why);
  }
  const { url = "" } = request.raw;
  const mark = url.indexOf("?");
  if (mark !== -1 && url.includes("%", mark)) refuseUnreadableQuery(url.slice(mark + 1));
}

/** Checks the raw text of a query, because Fastify leaves undecodable text unchanged. */
function refuseUnreadableQuery(query: string): void {
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    const raw = equals === -1 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
    const [name = null, value = null] = raw.map(decoded);
    if (name === null || value === null) throw invalidQuery(name ?? raw[0] ?? "", raw[1], NOT_UTF8);
    const why = faultOfText(name) ?? faultOfText(value);
    if (why !== null) throw invalidQuery(readable(name), readable(value), why);
  }
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}

/** Returns the text of a body, or null when the body is not UTF-8. */
export function textOfBody(bytes: Buffer): string | null {
  return isUtf8(bytes) ? bytes.toString("utf8") : null;
}

/**
 * Returns a 400 with the path to the first text in a parsed body that no database stores, or null when there is none. `source` is the
 * unparsed body: only an escape can bring such a character into it.
 *
 * Cost: one search for bodies without escapes.
 */
export function explainUnreadableBody(source: string, value: unknown): Fault | null {
  return source.includes("\\u") ? unreadableWithin(value, []) : null;
}

function unreadableWithin(value: unknown, path: readonly string[]): Fault | null {
  if (typeof value === "string") {
    const why = faultOfText(value);
    return why === null ? null : unreadable(path, value, why);
  }
  if (typeof value !== "object" || value === null) return null;
  for (const [name, member] of Object.entries(value)) {
    const why = faultOfText(name);
    const found = why === null ? unreadableWithin(member, [...path, name]) : unreadable([...path, name], name, why);
    if (found !== null) return found;
  }
  return null;
}

function unreadable(path: readonly string[], value: string, why: string): Fault {
  if (path.length === 0) return badRequest(`The request body is a text that cannot be read. ${why}`);
  return invalidField(describeValue(path.map(readable).join(".")), readable(value), why);
}

/** Replaces the characters that make the text unreadable. */
function readable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
