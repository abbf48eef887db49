import { describe, expect, test } from "vitest";
import { Microversion } from "./microversion.ts";
import { closedObject, mapOf, uuid } from "./schemas/patterns.ts";
import { checkQuery, isValid, parseJson, readBody } from "./validate.ts";

const UUID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const text = { type: "string", minLength: 1, maxLength: 8 };
const schemas = {
  "1.0": closedObject({ name: text }),
  "1.14": closedObject(
    { name: text, parent: uuid, sizes: mapOf("^[A-Z]+$", { type: "integer", minimum: 1, maximum: 9 }, 1) },
    ["parent", "sizes"],
  ),
};
const read = (json: unknown, minor = 39) => readBody({ json, version: new Microversion(minor) }, schemas);
const whyNot = (json: unknown, minor = 39): string => {
  try {
    read(json, minor);
  } catch (error) {
    return (error as Error).message.replaceAll("\n", " ");
  }
  return "";
};

describe("a body", () => {
  test("is validated by the schema of its version", () => {
    expect(read({ name: "a", parent: UUID.toUpperCase() }, 14)).toEqual({ name: "a", parent: UUID.toUpperCase() });
    expect(whyNot({ name: "a", parent: UUID }, 13)).toContain("Additional properties are not allowed ('parent' was");
    expect(() => readBody({ json: {}, version: new Microversion(0) }, { "1.2": {} })).toThrow(
      "no schema is valid at 1.0",
    );
  });

  test.each([
    [{}, "'name' is a required property", "On instance:"],
    [{ name: "" }, "'' is too short", "On instance['name']:"],
    [{ name: "123456789" }, "'123456789' is too long", "Failed validating 'maxLength'"],
    [{ name: 1 }, "1 is not of type 'string'", "On instance['name']:"],
    [{ name: "a", parent: "b" }, "'b' is not a 'uuid'", "On instance['parent']:"],
    [{ name: "a", sizes: {} }, "{} does not have enough properties", "On instance['sizes']:"],
    [{ name: "a", sizes: { A: 0 } }, "0 is less than the minimum of 1", "On instance['sizes']['A']:"],
    [{ name: "a", sizes: { A: 10 } }, "10 is greater than the maximum of 9", "On instance['sizes']['A']:"],
    [{ name: "a", sizes: { "a/b~c": 1 } }, "'a/b~c' does not match any of the regexes: '^[A-Z]+$'", "['sizes']"],
    [["a"], "['a'] is not of type 'object'", "On instance:"],
  ])("%j: the refusal names the fault and its place", (json, what, where) => {
    const why = whyNot(json);
    expect(why).toContain(`JSON does not validate: ${what}`);
    expect(why).toContain(where);
  });

  test("that is deep or long is quoted only in part", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = level % 2 === 0 ? [deep] : { a: deep };
    expect(whyNot({ name: deep }).length).toBeLessThan(1_000);
    expect(whyNot({ name: Array.from({ length: 100_000 }, () => "x".repeat(10)) }).length).toBeLessThan(1_000);
  });
});

describe("JSON", () => {
  const parse = (body: string | Uint8Array) =>
    // Nothing else of a request is looked at.
    parseJson({ body: typeof body === "string" ? Buffer.from(body) : body } as Parameters<typeof parseJson>[0]);

  test("is read exactly, escapes included", () => {
    expect(parse('{"a":["\\u00e9","\\\\u0000"]}')).toEqual({ a: ["é", "\\u0000"] });
  });

  test.each([
    ["", "Malformed JSON"],
    ["{", "Malformed JSON"],
    [new Uint8Array([0x22, 0xff, 0x22]), "not UTF-8"],
    ['["a\\u0000"]', "NUL"],
    ['{"a\\u0000":1}', "NUL"],
    ['["a\\ud800"]', "surrogate"],
    ['{"\\uDFFF":1}', "surrogate"],
    ["[".repeat(200_000), "Malformed JSON"],
  ])("%s is refused", (body, message) => {
    expect(() => parse(body)).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(message) }),
    );
  });
});

describe("a query string", () => {
  const check = (query: string, minor = 39) =>
    checkQuery({ query: new URLSearchParams(query), version: new Microversion(minor) }, schemas);

  test("may have the keys of its version, and the last value of a repeated key is validated", () => {
    expect(() => check("name=a")).not.toThrow();
    expect(() => check("name=&name=a")).not.toThrow();
    expect(() => check("name=a&name=")).toThrow("too short");
    expect(() => check(`name=a&parent=${UUID}`, 13)).toThrow("Additional properties");
    expect(() => check("name=a&__proto__=b")).toThrow("Additional properties");
  });
});

test("can be checked for a single value without a refusal", () => {
  expect(isValid({ name: "a" }, schemas, new Microversion(0))).toBe(true);
  expect(isValid({ name: 1 }, schemas, new Microversion(0))).toBe(false);
});
