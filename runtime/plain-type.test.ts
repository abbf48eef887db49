import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { firstFault } from "./first-fault.ts";
import { PlainType } from "./plain-type.ts";

/** One of each kind, made with either. */
const everything = (type: typeof PlainType) =>
  type.Object(
    {
      array: type.Array(type.String({ maxLength: 3 }), { maxItems: 2 }),
      boolean: type.Boolean(),
      enum: type.Optional(type.Enum(["one", "two"])),
      integer: type.Integer({ minimum: 1 }),
      literal: type.Literal(1),
      text: type.Literal("text"),
      number: type.Optional(type.Number({ exclusiveMinimum: 0 })),
      nested: type.Optional(type.Object({ inner: type.Optional(type.String()) })),
      record: type.Record(type.String({ pattern: "^[A-Z]+$" }), type.Integer()),
      free: type.Optional(type.Record(type.String({ maxLength: 255 }), type.Unknown())),
      tuple: type.Tuple([type.String(), type.Number()]),
    },
    { additionalProperties: false },
  );
const VALID = {
  ...{ array: ["a"], boolean: true, integer: 1, literal: 1, text: "text", record: { A: 1 }, tuple: ["a", 1] },
};

test("makes the schemas that TypeBox makes", () => {
  const plain = everything(PlainType);
  expect(plain).toEqual(everything(Type as typeof PlainType));
  expect(plain.required).toEqual(["array", "boolean", "integer", "literal", "text", "record", "tuple"]);
});

describe("the first fault", () => {
  test.each([
    [{}, null],
    [{ number: 1, enum: "two", nested: {}, free: { a: 1 } }, null],
    [{ array: ["a", "b", "c"] }, "/array must not have more than 2 items"],
    [{ array: [1] }, "/array/0 must be string"],
    [{ boolean: "true" }, "/boolean must be boolean"],
    [{ enum: "three" }, '/enum must be one of "one", "two"'],
    [{ integer: 0.5 }, "/integer must be integer"],
    [{ literal: 2 }, "/literal must be equal to constant"],
    [{ number: 0 }, "/number must be > 0"],
    [{ nested: { inner: 1 } }, "/nested/inner must be string"],
    [{ record: { A: "1" } }, "/record/A must be integer"],
    [{ unknown: 1 }, "/unknown is not known"],
    [{ array: undefined }, "/array must be array"],
  ])("of a valid value with %j is %j", (change, fault) => {
    const value = { ...VALID, ...change };
    expect(firstFault(everything(PlainType), value)).toBe(fault);
    expect(firstFault(everything(Type as typeof PlainType), value)).toBe(fault);
  });
});
